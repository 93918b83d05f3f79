// Package transport carries commands to Redis.
//
//   - A [Client] sends commands, returns their replies, and subscribes to channels. [NewRedigo] makes one of a
//     redigo pool. Any other Redis library will do as well: package clienttest tests a client.
//   - A round trip is one Do of a client: some commands in one write, and their replies.
//   - A [Resetter] can give up its connections, a [ClusterClient] knows clusters.
//   - [ErrRefused] says that nothing was done, [ErrUnavailable] that the commands may have been done.
//   - A call, within a Redigo, is the commands of one round trip. A link is one connection and its calls.
//
// The two kinds of errors matter most. After a take that has failed, somebody must find out whether the lock is
// held, unless the command was certainly not executed. In doubt the error is ErrUnavailable.
//
// Scripts need more than a client offers, and package scripting does that: EVAL if Redis does not know an
// EVALSHA, numbered replies, and repetition after a connection broke. So a client must repeat nothing by itself.
package transport

import (
	"context"
	"errors"
	"fmt"
)

var (
	// ErrUnavailable: Redis could not be reached, did not reply in time, or the connection broke. Unless the
	// error also wraps ErrRefused, the commands may have been executed, or may still be executed.
	ErrUnavailable = errors.New("redis is unavailable")
	// ErrRefused is an ErrUnavailable after which nothing was done: Redis refused the command, or the commands
	// were certainly not sent. A refusal by a proxy is taken for one by Redis, although a proxy may also refuse
	// what was done.
	ErrRefused error = refused{}
	// ErrClosed: the client was closed.
	ErrClosed = errors.New("the client is closed")
	// ErrMoved ends a subscription if the slot of its channel has moved to another node.
	ErrMoved = fmt.Errorf("%w: the slot has moved", ErrUnavailable)
)

type refused struct{}

func (refused) Error() string { return ErrUnavailable.Error() }
func (refused) Unwrap() error { return ErrUnavailable }

// A Command is its name, which is a string, and its arguments. Each argument is a string, a []byte, an int or an
// int64.
type Command []any

// A Client may be used by any number of goroutines at once. If one of its methods panics, or a hook in it does,
// the round trip fails with ErrUnavailable, and is not repeated. The error tells where the panic was.
type Client interface {
	// Do sends the commands in this order, in one write if the client can. All keys are in the slot of key.
	// It returns one reply to each command: nil, an int64, a string or []byte, a []any of these, or, if Redis
	// refused that command, an error with Redis's own words. Only the last reply may be large: nobody may be
	// reading before all commands are sent. The commands are the caller's again when Do has returned.
	//
	// If Do returns an error, there are no replies. The error wraps ErrRefused if nothing was sent, and
	// otherwise ErrUnavailable. If the time was over, the error has a method Timeout that returns true, as a
	// net.Error has: such a round trip is not repeated.
	//
	// Do takes no longer than the client's own timeout and ctx's deadline allow. A deadline does not harm
	// others on the same connection. If ctx is cancelled, Do goes on with what was sent, since its outcome
	// would never be known. If ctx has ended before, Do sends nothing.
	Do(ctx context.Context, key string, commands ...Command) ([]any, error)

	// Subscribe listens to a channel. ctx bounds how long it takes to begin, and nothing else. Errors wrap
	// ErrUnavailable.
	Subscribe(ctx context.Context, channel string) (Subscription, error)
}

// A Resetter is a Client that can give up its connections. Reset is called after a reply has come that belongs to
// another round trip: other replies on that connection may be wrong, too. Round trips that are under way, or begin
// at that moment, may fail with ErrUnavailable.
type Resetter interface{ Reset() }

// A ClusterClient is a Client that knows clusters. It sends each round trip to the node that has the slot of its
// key, and follows slots that move. If a node defers a command, since a slot is being moved or a replica is taking
// over, package scripting repeats the command.
//
// On a cluster, PUBLISH does not count all who listen to a message. So waiters for a lock listen to a channel in
// the slot of its key.
type ClusterClient interface {
	Client
	// IsCluster reports whether Redis is a cluster. It is called after a round trip has succeeded.
	IsCluster() bool
	// SubscribeShard is Subscribe, by SSUBSCRIBE, at the node that has the slot of the channel. Receive fails
	// with ErrMoved when the slot has moved to another node.
	SubscribeShard(ctx context.Context, channel string) (Subscription, error)
}

// A Subscription is to one channel.
type Subscription interface {
	// Receive waits for the next message. After an error there are no more messages. One goroutine at a time
	// calls it.
	Receive() (string, error)
	// Close may be called at any time. It ends a Receive that is under way.
	Close() error
}
