// Package records is the engine of package store: it keeps sessions in Redis, each a record, taken and given
// back under a lock. Package middleware calls it, and gets it from a store by [Of].
//
// # Design
//
// A session with the public id ID is up to three keys, in one slot of a cluster:
//
//	<prefix>{ID}             the record: one line of JSON
//	<prefix>{ID}.lock        the lock: the token of its holder, for the time of a lease
//	<prefix>{ID}.lock.queue  the processes that wait for the lock, while there are any
//
// and while a large record is being saved, one more, which nobody reads: see staged.go. The sessions of a
// user have other names, and share three keys more: see user.go.
//
// An exclusive request is two round trips: [Engine.Take] takes the lock and reads the record in one
// write (see take.go), [Hold.Save] writes the record and releases the lock in one script. Requests of one process
// that wait for the same session need fewer: they hold it one after another without giving it back
// in between, and a round trip commits for several of them. [Engine.Load] reads without a lock, and
// [Engine.SaveLoaded] saves on top of that if nobody has the lock: see optimistic.go.
//
// # The fence
//
// A lock alone does not keep a stale holder from writing: a process may be paused between asking
// "is it still mine?" and the write, and a command may reach Redis long after it was sent. So each
// script that changes a record keeps one rule: a write replaces exactly the record that its writer
// has read, or has written itself, or it does nothing. Each write puts a new stamp into the record,
// 71 random bits, so no two records of a session are ever equal, and to compare the stamp is to compare the
// record. A holder that fails this test gets [ErrLost] and has changed nothing.
//
// The lock only keeps others out while a holder works. The script asks for its token, too, so that a
// holder that lost its lock learns it even if nobody has written since. A token alone would not do as
// a fence: a take that is repeated after a broken connection may give the lock to its token again,
// long after that has given it back.
//
// Every script may be repeated: the stamp shows a writer that the record it finds is its own. Only
// where a try was left without an answer, and a repetition of it was refused, is it not known
// whether the first one was done: the error then wraps [ErrUnavailable] as well.
//
// # In use
//
// A session that is held, or waited for, does not run out. Each script that takes or extends the
// lock lets the record outlast it, and each that finds the lock held lets the record outlast the
// time until it is asked for again. An id whose lock is held is never said to be absent.
//
// # The end of an id
//
// A destroyed or renewed id leaves a tombstone for a minute, so that a request
// that still comes with it is distinguished from one whose session ran out. An id
// that Redis does not know is never written to.
//
// # Clocks
//
// What a command does that comes long after it was sent, and finds no trace of what it did the first
// time, is bounded by Redis's clock: see clock.go.
//
// The idle timeout is Redis's to keep, by the record's TTL. The absolute one counts from the
// creation time in the record, by the clocks of the processes, so it is as exact as these agree.
package records

// The way of one exclusive request, from where package middleware calls. lease/ and
// scripting/ are in internal, transport/ is in locker.
//
//	Engine.Take              hold.go                  checks the terms
//	  Group.Acquire         lease/acquire.go         waits for the lock:
//	    Group.enter         lease/callers.go         for its turn among the requests of this process,
//	    Lease.acquire       lease/acquire.go         and for other processes: tries, and rests in between
//	      taking.Take       take.go                  one try; what it has read becomes a tenure
//	        taking.plainly  take.go                  the first: by plain commands; else, or where all is not as usual, take.lua
//	        Runner.RoundTripscripting/scripting.go   numbers it, and repeats it where the connection breaks
//	          Redigo.Do     transport/redigo.go      gives it to a connection
//	            link.write  transport/link.go        sends it, with those of others
//	            link.read   transport/link.go        receives the reply, and those before it
//	      Lease.begin       lease/lease.go           from now on a timer renews the lease
//	  tenure.admit          tenure.go                hands out the record
//
//	Hold.SaveContent        hold.go                  checks the size; encoded is only what is sent
//	  tenure.end            tenure.go                makes it the newest version
//	    Lease.Stop          lease/handoff.go         renews no more; returns the request that is next, if any
//	    tenure.passOn       tenure.go                hands over at once, or with the exchange that stores the version
//	      tenure.send       commit.go                the commit, by commit.lua, with the token of the next holder
//	        Runner.RoundTripscripting/scripting.go   as above
//	    tenure.flush        commit.go                where it was handed over at once: stores the version now
//	    Lease.Leave         lease/handoff.go         the turn goes on
//
// The lease calls the store for one thing only: tenure.Extend (commit.go) renews it, from the
// timer. Of the other files, load.go reads without a lock, optimistic.go saves without one, staged.go sends large
// records, record.go knows a record's form, with times.go, user_record.go and seal.go, and scripts.go the
// scripts. user.go is the story of the sessions of a user: user_list.go lists them, user_sessions.go begins
// and ends them, and user_prune.go makes room for a login. clock.go is about commands that come late, and
// guard.go about replies that are absurd.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/a2139e8d/latchkey/internal/excerpt"
	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// The errors of this package, to be matched with [errors.Is].
var (
	// ErrNotFound: there is no record: the id is unknown, or it timed out.
	ErrNotFound = errors.New("no such session")
	// ErrGone: the session was destroyed or got a new id less than a minute ago.
	ErrGone = errors.New("session was ended by another request")
	// ErrCorrupt: what is stored is not a record that this version can read.
	ErrCorrupt = errors.New("session record cannot be read")
	// ErrConflict: another request has changed the session since it was loaded, or holds it.
	ErrConflict = errors.New("session is being changed by another request")
	// ErrTooLarge: the record is larger than Terms.MaxBytes.
	ErrTooLarge = errors.New("session is too large")
)

// errClosed is that of an engine that was closed.
var errClosed = fmt.Errorf("%w: the store was closed", ErrUnavailable)

// The errors of the lock. They equal those of package locker, which documents them.
var (
	ErrTimeout        = locker.ErrTimeout
	ErrTooManyWaiters = locker.ErrTooManyWaiters
	ErrLost           = locker.ErrLost
	ErrUnavailable    = locker.ErrUnavailable
)

// Options of an engine. The zero value means the defaults. They are those of package store, which documents them.
type Options struct {
	Prefix     string
	Lease      time.Duration
	Timeout    time.Duration
	Encryption Encryption
}

// DefaultPrefix is the default of Options.Prefix.
const DefaultPrefix = "latchkey:"

const maxPrefix = locker.MaxKey / 2 // leaves room for an id in the longest key of a lock

// Of returns the engine of a *store.Store. Package store sets it, which alone knows where a store has it.
var Of func(store any) *Engine

// An Engine is safe for use by any number of goroutines.
type Engine struct {
	options    Options
	runner     *scripting.Runner
	owned      func() error // closes the client, if it is ours to close
	lines      lease.Lines[*Hold]
	locking    lease.Options                 // of every Take, but for what its Terms say
	latest     atomic.Pointer[lease.Options] // of the last Take; most have the same
	closed     atomic.Bool
	guests     atomic.Bool   // a read has met a session with an idle timeout of its own
	maxUnheard time.Duration // see maxUnheard; tests do not want it to depend on the machine
	err        error         // what is wrong with the options
	ring       *keyring      // of Options.Encryption; nil without
	clock      clock
}

// Broken returns an engine of which each use fails with err.
func Broken(err error) *Engine { return &Engine{err: err} }

// New returns an engine on any client. The client bounds each round trip by a timeout of its own,
// which Options.Timeout should be equal to. It stays the caller's, unless it has a method
// CloseWithStore() error: [Engine.Close] calls that. What is wrong with the options is reported by
// [Engine.Err], and is the error of every use.
func New(c transport.Client, o Options) *Engine {
	s := &Engine{options: o, maxUnheard: maxUnheard, clock: clock{began: time.Now()}, err: o.check()}
	if own, ok := c.(interface{ CloseWithStore() error }); ok {
		s.owned = own.CloseWithStore
	}
	s.ring, _ = newKeyring(o.Encryption) // else s.err says why
	s.options.Encryption = Encryption{}  // printing an engine shows no key
	s.options.Prefix = cmp.Or(o.Prefix, DefaultPrefix)
	s.options.Timeout = cmp.Or(o.Timeout, locker.DefaultTimeout)
	s.runner = scripting.NewRunner(c, s.options.Timeout)
	s.lines.Notifiers = lease.NewNotifiers(s.runner, lease.Spin{Runner: s.runner}.Quit)
	s.locking = lease.Options{Lease: o.Lease, Timeout: o.Timeout, Held: func(err error, o lease.Owner, d time.Duration) error {
		return &locker.HeldError{Owner: locker.Owner(o), For: d, Err: err}
	}}.WithDefaults()
	return s
}

func (o Options) check() error {
	switch {
	case strings.ContainsAny(o.Prefix, "{}"):
		return fmt.Errorf("store: Options.Prefix is %q: it must not contain braces", excerpt.Of(o.Prefix))
	case len(o.Prefix) > maxPrefix:
		return fmt.Errorf("store: Options.Prefix has %d bytes: it must have at most %d", len(o.Prefix), maxPrefix)
	case o.Lease < 0, o.Lease > 0 && o.Lease < time.Millisecond:
		return fmt.Errorf("store: Options.Lease is %v: it must be at least 1ms, or 0 for the default", o.Lease)
	case o.Timeout < 0, o.Timeout > 0 && o.Timeout < time.Millisecond:
		return fmt.Errorf("store: Options.Timeout is %v: it must be at least 1ms, or 0 for the default", o.Timeout)
	}
	_, err := newKeyring(o.Encryption)
	return err
}

// Err returns what is wrong with the options, or nil.
func (s *Engine) Err() error { return s.err }

// usable returns why the store must not be used: with wrong options it would keep sessions as nobody
// wanted it, in the plain or under other keys.
func (s *Engine) usable() error {
	if s.err == nil && s.closed.Load() {
		return errClosed
	}
	return s.err
}

// Ping reports whether Redis answers, for readiness checks and at start. Of a Redis Cluster one node
// has to; where the client does not know clusters, as that of [Open] and [New] does not, it fails. Its
// error wraps [ErrUnavailable].
func (s *Engine) Ping(ctx context.Context) error {
	if s.err != nil {
		return s.err
	}
	err := s.usable()
	if err == nil {
		keys := make([]string, len(pinged))
		for i, id := range pinged {
			keys[i] = s.recordKey(id)
		}
		err = s.runner.Ping(ctx, keys...)
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// pinged are ids of no session. Each is in another eighth of a cluster's slots.
var pinged = [...]string{"ping-72", "ping-21", "ping-73", "ping-20", "ping-70", "ping-23", "ping-71", "ping-22"}

// Close ends at once all that the engine does by itself, and closes its connections, except
// those of a client that stays the caller's; see [New]. Requests that wait for a session fail
// with [ErrUnavailable], as do all that come later, and without connections those that hold one
// when they save it: let them finish first, as [net/http.Server.Shutdown] does. A lock that is held by
// then, or was to be cleaned up in the background after a lost reply, is free when its lease ends.
func (s *Engine) Close() error {
	s.closed.Store(true)
	s.lines.Close(errClosed)
	if s.owned == nil {
		return nil
	}
	return s.owned()
}
