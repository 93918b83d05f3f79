// Package transport carries commands to Redis. A [Client] sends commands and returns their replies, and subscribes
// to channels. The rest of this module needs only a Client, so it works with any Redis library.
//
// # What you need
//
//   - For sessions, or for locks on a redigo pool: nothing. Packages store and locker make their clients.
//   - For locks by locker.New on a redigo pool: [NewRedigo].
//   - For another Redis library: a type that is a [Client]. It may be a [ClusterClient], a [RoutedClient], a [Resetter]
//     and an [Owned], too, which are optional. Package clienttest checks that a Client keeps its promises.
//
// # Errors
//
// Locks must know, above all, whether a failed command may have been executed. If a command that acquires a lock
// may have been executed, the caller must find out whether the lock is held. So there are two kinds of errors:
// [ErrRefused] after a command that was certainly not executed, and [ErrUnavailable] in doubt.
//
// Other packages of this module add what scripts need: EVAL if EVALSHA fails, numbered replies, and repetition
// after a broken connection. So a client must not repeat anything by itself.
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
	// ErrRefused is an ErrUnavailable that means that nothing was done: Redis refused, or the commands were
	// certainly not sent. If a proxy refuses by itself, its refusal is taken for Redis's, although the commands
	// may have been executed.
	ErrRefused error = refused{}
	// ErrClosed: the client was closed.
	ErrClosed = errors.New("the client is closed")
	// ErrMoved ends a subscription if the slot of its channel has moved to another node.
	ErrMoved = fmt.Errorf("%w: the slot has moved", ErrUnavailable)
)

type refused struct{}

func (refused) Error() string { return ErrUnavailable.Error() }
func (refused) Unwrap() error { return ErrUnavailable }

// A BrokenError is an ErrUnavailable: the connection broke before all replies were there. It does not wrap the Cause,
// which may be the timeout of another call.
type BrokenError struct{ Cause error }

func (b *BrokenError) Error() string {
	return fmt.Sprintf("%v: the connection broke: %v", ErrUnavailable, b.Cause)
}

// Unwrap returns ErrUnavailable.
func (b *BrokenError) Unwrap() error { return ErrUnavailable }

// A Command is its name, which is a string, and its arguments, each a string, a []byte, an int or an int64.
type Command []any

// Any number of goroutines may use a Client at once. If one of its methods panics, or a hook in it does, the round
// trip fails with ErrUnavailable, and is not repeated; the error says where the panic was.
type Client interface {
	// Do sends the commands in this order, and in one write if the client can. All keys are in the slot of key.
	// It returns a reply to each command: nil, an int64, a string or []byte, a []any of these, or, if Redis
	// refused that command, an error with Redis's own words. Only the last reply may be large, since a client
	// may begin to read after all commands are sent. When Do has returned, the caller may change the commands.
	//
	// An error of Do itself means that there are no replies. It wraps ErrRefused if nothing was sent, and
	// otherwise ErrUnavailable. If Do timed out, the error has a method Timeout that returns true, like a
	// net.Error: such a call is not repeated. If the connection broke, the error may be a *BrokenError, which tells
	// observers why.
	//
	// Do takes no longer than the client's own timeout and ctx's deadline allow, and a deadline does not harm
	// other calls on the same connection. Cancelling ctx does not break off commands that were sent, since their
	// outcome would never be known. If ctx has ended before Do is called, nothing is sent.
	Do(ctx context.Context, key string, commands ...Command) ([]any, error)

	// Subscribe listens to a channel. ctx bounds only how long it takes to begin. Errors wrap ErrUnavailable.
	Subscribe(ctx context.Context, channel string) (Subscription, error)
}

// A ClusterClient is a Client that knows clusters: it sends each round trip to the node that has the slot of its
// key, and follows slots that move. If a node defers a command, since a slot is being moved or a replica is taking
// over, Latchkey repeats the command.
//
// On a cluster, PUBLISH does not count all listeners. So waiters for a lock listen to a channel in the slot of the
// lock's key.
type ClusterClient interface {
	Client
	// IsCluster reports whether Redis is a cluster. As long as that is not known, it returns false. It may be called at any
	// time, also before the first round trip.
	IsCluster() bool
	// SubscribeShard is Subscribe, by SSUBSCRIBE, at the node that has the slot of the channel. Receive fails
	// with ErrMoved when the slot has moved to another node.
	SubscribeShard(ctx context.Context, channel string) (Subscription, error)
}

// A Resetter is a Client that can give up its connections. Reset is called when a reply belongs to another round
// trip, since other replies on that connection may be wrong, too. Round trips that are under way, or begin at that
// moment, may fail with ErrUnavailable.
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
