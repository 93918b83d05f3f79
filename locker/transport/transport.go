// Package transport carries commands to Redis. A [Client] sends commands and returns their replies, and subscribes
// to channels. All else in this module is built on that, so any Redis library can do it.
//
// # What you need
//
//   - For sessions, or for locks on a redigo pool: nothing. Packages store and locker make their clients.
//   - For locks by locker.New on a redigo pool: [NewRedigo].
//   - For another Redis library: a type that is a [Client]. It may be a [ClusterClient], a [Resetter] and an
//     [Owned], too, which are optional. Package clienttest checks that it keeps its promises.
//
// # Errors
//
// Locks depend on one thing above all: to know what may have happened. After a failed take somebody must find out
// whether the lock is held, unless the command was certainly not executed. So there are two kinds of errors,
// [ErrRefused] and [ErrUnavailable], and in doubt it is the latter.
//
// What scripts need is above this package: EVAL if EVALSHA fails, numbered replies, and repetition after a broken
// connection. So a client must not repeat anything by itself.
package transport

import (
	"context"
	"errors"
	"fmt"
)

var (
	// ErrUnavailable: Redis could not be reached, did not reply in time, or the connection broke. Unless the
	// error also wraps ErrRefused, the commands may have been executed, or may be executed yet.
	ErrUnavailable = errors.New("redis is unavailable")
	// ErrRefused is an ErrUnavailable after which nothing was done: Redis said no, or the commands were certainly
	// not sent. A proxy that says no by itself is taken for Redis, although the commands may have been done.
	ErrRefused error = refused{}
	// ErrClosed: the client was closed.
	ErrClosed = errors.New("the client is closed")
	// ErrMoved ends a subscription if the slot of its channel has moved to another node.
	ErrMoved = fmt.Errorf("%w: the slot has moved", ErrUnavailable)
)

type refused struct{}

func (refused) Error() string { return ErrUnavailable.Error() }
func (refused) Unwrap() error { return ErrUnavailable }

// A Command is its name, which is a string, and its arguments, each a string, a []byte, an int or an int64.
type Command []any

// Any number of goroutines may use a Client at once. If one of its methods panics, or a hook in it does, the round
// trip fails with ErrUnavailable, and is not repeated; the error says where the panic was.
type Client interface {
	// Do sends the commands in this order, and in one write if the client can. All keys are in the slot of key.
	// It returns a reply to each command: nil, an int64, a string or []byte, a []any of these, or, if Redis
	// refused that command, an error with Redis's own words. Only the last reply may be large: nobody may be
	// reading before all commands are sent. The commands are the caller's again when Do has returned.
	//
	// An error of Do itself means that there are no replies. It wraps ErrRefused if nothing was sent, and
	// otherwise ErrUnavailable. If Do timed out, the error has a method Timeout that says so, as a net.Error
	// has: what has had its time is not repeated.
	//
	// Do takes no longer than the client's own timeout and ctx's deadline allow, and a deadline does not harm
	// others that use the same connection. To cancel ctx does not break off what was sent, since its outcome
	// would never be known. If ctx has ended before, nothing is sent.
	Do(ctx context.Context, key string, commands ...Command) ([]any, error)

	// Subscribe listens to a channel. ctx bounds only how long it takes to begin. Errors wrap ErrUnavailable.
	Subscribe(ctx context.Context, channel string) (Subscription, error)
}

// A ClusterClient is a Client that knows clusters: it sends each round trip to the node that has the slot of its
// key, and follows slots that move. What a node puts off, since a slot is being moved or a replica is taking over,
// is repeated above this package.
//
// A message that is published on a cluster is not counted by all who listen to it. So on a cluster waiters for a
// lock listen to a channel in the slot of its key.
type ClusterClient interface {
	Client
	// IsCluster reports whether Redis is a cluster. It is called after a round trip has succeeded.
	IsCluster() bool
	// SubscribeShard is Subscribe, by SSUBSCRIBE, at the node that has the slot of the channel. Receive fails
	// with ErrMoved when the slot has moved to another node.
	SubscribeShard(ctx context.Context, channel string) (Subscription, error)
}

// A Resetter is a Client that can give up its connections. Reset is called when a reply has come that belongs to
// another round trip, so that others on that connection may be wrong, too. Round trips that are under way, or come
// at that moment, may fail with ErrUnavailable.
type Resetter interface{ Reset() }

// An Owned client belongs to its store: the store's Close calls CloseWithStore. Any other client stays the
// caller's.
type Owned interface{ CloseWithStore() error }

// A Subscription is to one channel.
type Subscription interface {
	// Receive waits for the next message. After an error there are no more messages. One goroutine at a time
	// calls it.
	Receive() (string, error)
	// Close may be called at any time. It ends a Receive that is under way.
	Close() error
}
