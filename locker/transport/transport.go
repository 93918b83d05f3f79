// Package transport is the way to Redis: a [Client] sends commands and returns
// their replies, and subscribes to channels. Everything else in this module is
// built on that, so any Redis library can do the work. [NewRedigo] makes a client
// of a redigo pool; package clienttest checks that a client keeps its promises.
//
// Locks depend on one thing above all: to know what may have happened. If a
// command that takes a lock fails, somebody has to find out later whether the
// lock is held, unless the command was certainly not executed. So a client
// distinguishes two kinds of errors, [ErrRefused] and [ErrUnavailable], and in
// case of doubt it is the latter.
//
// Scripts, their fall-back from EVALSHA to EVAL, and repetition after a broken
// connection are above this package. A client must not repeat commands by itself.
package transport

import (
	"context"
	"errors"
	"strings"
)

var (
	// ErrUnavailable: Redis could not be reached, did not answer in time, or the
	// connection broke. The commands may have been executed, or may be executed
	// yet, unless the error also wraps ErrRefused.
	ErrUnavailable = errors.New("redis is unavailable")
	// ErrRefused: nothing was done, because Redis said no, or because the commands
	// were certainly not sent.
	ErrRefused = errors.New("redis refused")
)

// A Command is its name, which is a string, and its arguments, each a string, a
// []byte, an int or an int64.
type Command []any

// A Client is used by any number of goroutines at once.
type Client interface {
	// Do sends the commands in this order, and in one write if the client can. All
	// their keys are in the slot of key. It returns one reply for each command:
	// nil, an int64, a string or a []byte, a []any of these, or, where Redis
	// refused that command, an error with Redis's own words. The commands belong
	// to the caller again once Do has returned.
	//
	// An error of Do itself means that there are no replies. It wraps ErrRefused
	// if nothing was sent. Any other error wraps ErrUnavailable: the commands may
	// have been executed.
	//
	// Do takes no longer than the client's own timeout and ctx's deadline allow. A
	// deadline must not harm others that share the connection. Cancelling ctx does
	// not break off what was sent, since its outcome would never be known. If ctx
	// has ended already, nothing is sent.
	Do(ctx context.Context, key string, commands ...Command) ([]any, error)

	// Subscribe listens to a channel. ctx bounds only how long it takes to begin.
	// Errors wrap ErrUnavailable.
	Subscribe(ctx context.Context, channel string) (Subscription, error)
}

// A Resetter is a Client that can give up its connections. Reset is called when a
// reply has arrived that belongs to another exchange: whatever comes next on that
// connection may be wrong, too. Exchanges that are under way may fail with
// ErrUnavailable; later ones use new connections.
type Resetter interface{ Reset() }

// A Subscription is to one channel. Receive is called by one goroutine at a time.
type Subscription interface {
	// Receive waits for the next message. After an error there are no more.
	Receive() (string, error)
	// Close may be called at any time, and ends a Receive that is under way.
	Close() error
}

// Refused returns the error of an exchange of which nothing was done: it wraps
// ErrRefused, ErrUnavailable and err.
func Refused(err error) error { return &failure{err, true} }

// Unavailable returns the error of an exchange that may have been executed: it
// wraps ErrUnavailable and err, but not ErrRefused, whatever err is.
func Unavailable(err error) error { return &failure{err, false} }

type failure struct {
	err     error
	refused bool
}

func (f *failure) Error() string {
	if text := f.err.Error(); strings.HasPrefix(text, ErrUnavailable.Error()) {
		return text
	}
	return ErrUnavailable.Error() + ": " + f.err.Error()
}

func (f *failure) Is(target error) bool {
	switch target {
	case ErrUnavailable:
		return true
	case ErrRefused:
		return f.refused
	}
	return errors.Is(f.err, target)
}

func (f *failure) As(target any) bool { return errors.As(f.err, target) }
