// Package records is the engine of package store: it keeps sessions in Redis. Package middleware calls it,
// and gets it from a store by [Of].
//
// # Words
//
//   - A record is a session as it is stored. Its revision, 71 random bits, identifies it among all records
//     that the session ever had.
//   - A lock lets one request at a time hold the session. A token identifies its holder.
//   - A hold is one request that has the session. A tenure is the time in which one process has the session:
//     its holds follow one another without releasing the lock in between.
//   - A commit is the round trip that stores what the holds of a tenure have changed.
//   - The fence is the rule that a write replaces the revision that its writer has read, or nothing.
//   - A tombstone takes the place of the record of an ended session.
//   - A tag stands for a user. A list has the user's sessions, and a mark tells which of them are alive.
//
// # Keys
//
// A session whose public ID is ID has up to three keys, in one slot of a cluster:
//
//	<prefix>{ID}             the record: one line of JSON
//	<prefix>{ID}.lock        the lock: the token of its holder, for the time of a lease
//	<prefix>{ID}.lock.queue  the processes that wait for the lock, while there are any
//
// While a large record is being saved there is one more key, which no request reads: see staged.go. The keys
// of a user's sessions have other names, and two more keys are common to all of them: see user.go.
//
// # Round trips
//
// An exclusive request makes two round trips. [Engine.Take] acquires the lock and reads the record: see
// take.go. [Hold.Save] writes the record and releases the lock in one script. Requests of one process that
// wait for the same session need fewer round trips: they hold the session one after another, and one commit
// stores what several of them have changed: see tenure.go. [Engine.Load] reads without a lock.
// [Engine.SaveLoaded] saves a session that Load has read, if no request has changed or locked it since: see
// optimistic.go.
//
// # The fence
//
// A lock alone does not keep a stale holder from writing. A process may be paused between asking "is it still
// mine?" and the write, and a command may reach Redis long after it was sent. So each script that changes a
// record keeps one rule: a write replaces exactly the record that its writer has read, or has written itself,
// or it does nothing. Each write has a new revision, so it is enough to compare revisions. A holder that
// fails this test gets [ErrLost] and has changed nothing.
//
// The lock keeps other requests out while a holder works. The scripts compare the lock's token, too, so that
// a holder that lost its lock learns it even if no other process has written since. The token alone cannot
// serve as the fence: a take that is repeated after a broken connection may give the lock to its token again,
// long after the lock was released.
//
// Every script may be repeated: the revision shows whether the stored record is the writer's own. If a try
// got no reply, and its repetition was refused, it is unknown whether the first try was done. Then the error
// wraps [ErrUnavailable] as well.
//
// # In use
//
// A session does not expire while it is held or waited for. Acquiring or extending the lock also extends the
// record beyond the lease. So does every attempt that finds the session locked. While its lock is held, a
// session is never reported as absent.
//
// # The end of an ID
//
// When a session is destroyed or gets a new ID, the old ID leaves a tombstone for a minute. So a late request
// with that ID gets another error than one whose session has expired. The sessions that EndUser ends keep their
// records, which are dead, for a minute, or for as long as they would have lived if that is shorter. A request that
// comes with such an ID meanwhile leaves a tombstone. A save never brings back an ID that Redis does not know.
//
// # Clocks
//
// A command may arrive long after it was sent, and find no trace of its first execution. Redis's clock bounds
// what such a command may do: see clock.go.
//
// Redis keeps the idle timeout, by the record's TTL. The absolute timeout counts from the creation time in
// the record, by the clocks of the processes, so it is as exact as these agree.
package records

// The way of one exclusive request, from where package middleware calls.
//
//	Engine.Take              internal/records/hold.go          checks the terms
//	  Lines.Enter            internal/lease/line.go            waits in the line of this process
//	  Ticket.Compete         internal/lease/contest.go         at the head of the line: tries, and rests in between
//	    taking.Take          internal/records/take.go          one try; if it succeeds, a tenure begins
//	      taking.plainly     internal/records/take.go          by plain commands; in unusual cases take.lua follows
//	        Runner.RoundTripPlain internal/scripting/roundtrip.go  sends them
//	          Redigo.Do      locker/transport/redigo.go        gives them to a connection
//	            link.write   locker/transport/link.go          sends them, together with commands of other requests
//	  tenure.start           internal/records/tenure.go        the lock is acquired; from now on an alarm renews it
//	  tenure.admit           internal/records/tenure.go        decides whether the hold can use the session
//
//	Hold.SaveContent         internal/records/hold.go          checks the size; the content is encoded when it is sent
//	  tenure.end             internal/records/tenure.go        makes the record the newest version
//	    tenure.vacate        internal/records/tenure.go        the next request in line begins at once, if it may
//	    tenure.settle        internal/records/commit.go        waits, or commits, until the version is stored
//	      tenure.commit      internal/records/commit.go        stores the version by commit.lua, and decides what becomes of the lock
//	        Runner.RoundTrip internal/scripting/roundtrip.go  numbers the call, and repeats it if the connection breaks
//	          Redigo.Do      locker/transport/redigo.go        as above
//	      tenure.lapse       internal/records/tenure.go        if no request waits, the tenure ends, and the line with it
//
// The other files: create.go begins a session, load.go reads without a lock, and optimistic.go saves without a lock.
// staged.go sends large records. record.go, timeouts.go, user_record.go and seal.go know the form of a record, and
// keys.go its keys. scripts.go has the scripts; each script is in a .lua file, and package lua puts them together from
// the parts that they share. user.go tells the story of a user's sessions: login.go begins them, max_sessions.go ends
// those beyond MaxSessions, user_list.go lists them, user_end.go ends them. clock.go is about commands that come late.
// observe.go tells observers what happens. extend.go extends a lock that is held. lost.go knows why a lock was lost.
// alive.go asks for a session that a long request has open.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
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
	// ErrNotFound: there is no such session: its ID is unknown, or it has expired.
	ErrNotFound = errors.New("no such session")
	// ErrGone: the session was destroyed or got a new ID less than a minute ago. If it got a new ID, the error is also
	// [ErrMoved].
	ErrGone = errors.New("session was ended by another request")
	// ErrCorrupt: the stored value is not a record that this version can read.
	ErrCorrupt = errors.New("session record cannot be read")
	// ErrLaterFormat: the record has a later format than this version can read. It is also an ErrCorrupt.
	ErrLaterFormat = fmt.Errorf("%w: a later version of Latchkey has written it", ErrCorrupt)
	// ErrConflict: another request has changed the session since it was loaded, or holds it.
	ErrConflict = errors.New("session is being changed by another request")
	// ErrTooLarge: the record is larger than Terms.MaxBytes.
	ErrTooLarge = errors.New("session is too large")
)

// errClosed is the error of an engine that was closed.
var errClosed = fmt.Errorf("%w: the store was closed", ErrUnavailable)

// The errors of the lock. They equal those of package locker, which documents them.
var (
	ErrTimeout        = locker.ErrTimeout
	ErrTooManyWaiters = locker.ErrTooManyWaiters
	ErrLost           = locker.ErrLost
	ErrUnavailable    = locker.ErrUnavailable
)

// Options of an engine. The zero value means the defaults. Package store documents the fields.
type Options struct {
	Prefix     string
	Lease      time.Duration
	Timeout    time.Duration
	Encryption Encryption
}

// DefaultPrefix is the default of Options.Prefix.
const DefaultPrefix = "latchkey:"

const maxLease = 365 * 24 * time.Hour // far from an overflow where times are added to it

const maxPrefix = locker.MaxKey / 2 // leaves room for an ID in the longest key of a lock

// Of returns the engine of a *store.Store. Package store sets Of, since it alone knows where a Store keeps
// the engine.
var Of func(store any) *Engine

// An Engine is safe for use by any number of goroutines.
type Engine struct {
	options    Options
	runner     *scripting.Runner
	owned      func() error // closes the client, if the engine owns it
	lines      lease.Lines[*Hold]
	locking    lease.Options                 // of every Take, except for what its Terms say
	latest     atomic.Pointer[lease.Options] // of the last Take, for the next one: most have the same
	closed     atomic.Bool
	guests     atomic.Bool   // a read has found a session with an idle timeout of its own
	maxUnheard time.Duration // see the constant; a field, so that tests do not depend on the machine's speed
	err        error         // what is wrong with the options
	ring       *keyring      // of Options.Encryption; nil: no encryption
	clock      clock
	context    context.Context // see Context
	end        context.CancelFunc
	observing  sync.Mutex                 // for changes of observers
	observers  atomic.Pointer[[]observer] // nil: none
}

// Broken returns an engine whose every use fails with err.
func Broken(err error) *Engine { return &Engine{err: err} }

// New returns an engine on any client, by the rules of store.NewOn. If the options are wrong, [Engine.Err]
// and every use return the reason.
func New(c transport.Client, o Options) *Engine {
	s := &Engine{options: o, maxUnheard: maxUnheard, clock: clock{began: time.Now()}, err: o.check()}
	if own, ok := c.(transport.Owned); ok {
		s.owned = own.CloseWithStore
	}
	s.ring, _ = newKeyring(o.Encryption) // otherwise s.err says why
	s.options.Encryption = Encryption{}  // printing an engine shows no key
	s.options.Prefix = cmp.Or(o.Prefix, DefaultPrefix)
	s.options.Timeout = cmp.Or(o.Timeout, locker.DefaultTimeout)
	s.runner = scripting.NewRunner(c, s.options.Timeout)
	s.lines.Notifiers = lease.NewNotifiers(s.runner, lease.Spin{Runner: s.runner}.Quit)
	s.lines.Sweeper.Swept = s.swept
	s.locking = lease.Options{Lease: o.Lease, Timeout: o.Timeout}.WithDefaults()
	s.context, s.end = context.WithCancel(context.Background())
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
	case o.Lease > maxLease:
		return fmt.Errorf("store: Options.Lease is %v: it must be at most %v", o.Lease, maxLease)
	case o.Timeout < 0, o.Timeout > 0 && o.Timeout < time.Millisecond:
		return fmt.Errorf("store: Options.Timeout is %v: it must be at least 1ms, or 0 for the default", o.Timeout)
	}
	_, err := newKeyring(o.Encryption)
	return err
}

// Err returns what is wrong with the options, or nil.
func (s *Engine) Err() error { return s.err }

// usable returns why the engine must not be used. With wrong options it might keep sessions unencrypted, or
// under the wrong keys.
func (s *Engine) usable() error {
	if s.err == nil && s.closed.Load() {
		return errClosed
	}
	return s.err
}

// Ping is documented in package store.
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

// pinged are IDs that no session has, one in each eighth of a cluster's slots.
var pinged = [...]string{"ping-72", "ping-21", "ping-73", "ping-20", "ping-70", "ping-23", "ping-71", "ping-22"}

// Context returns a context that ends when the engine is closed: for work in the background. It is nil if the engine
// is Broken.
func (s *Engine) Context() context.Context { return s.context }

// Close is documented in package store.
func (s *Engine) Close() error {
	s.closed.Store(true)
	if s.end != nil {
		s.end()
	}
	s.lines.Close(errClosed)
	if s.owned == nil {
		return nil
	}
	return s.owned()
}
