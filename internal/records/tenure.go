package records

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/internal/excerpt"
	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
)

// A tenure is the time in which one process has one session: from the round trip that acquires the lock and
// reads the record to the one that releases the lock. In between its requests hold the session one after
// another, and build on what is in memory. The tenure is the owner of the session's line.
//
// # Its states
//
//	              begin             end, release                  begin: early, or after a commit
//	start ──────────────▶ occupied ──────────────▶ vacant ──────────────────────────────▶ occupied
//	                         │                       │  a commit without a next hold
//	                         │                       └─────────────────────────▶ over: freed
//	                         └── fail, lapse ──────────────────────────────────▶ over: why
//
// Beside that, one round trip at most is under way: none ─▶ commit or extend ─▶ none.
//
// Invariant (one hold): at most one hold is present. When it begins, the hold before it has ended, and its
// version is the newest.
// Invariant (one round trip): sending is true from before a round trip is sent until its outcome is in term,
// revision and stored. So if it is false, and the tenure is not over, it is known what Redis has.
// Invariant (stored): stored <= newest and written <= newest. Redis has version stored or, during a commit,
// the version that the commit carries.
// Invariant (saved before answered): end returns nil only if stored has reached the version that it made.
// Invariant (no orphan): who leaves the tenure vacant goes on until a hold has begun, or the tenure is over.
// Invariant (over): if over is set, no hold is present, none begins, and no version is made. A commit that
// is under way still counts.
// Invariant (the line moves on): lines.Leave is called once in the life of a tenure, when it is over.
//
// check tests them whenever mu is given up. The protocol can be read in transcripts/, which a test compares with
// what happens.
//
// # Pipeline and group commit
//
// When a hold ends, its version of the record becomes the newest, and the next request in line
// starts on it at once, while the version is still on its way to Redis. What ends meanwhile goes into the
// next commit: the newest version contains them all. How far the requests may run ahead of Redis is
// bounded, by number and by time.
//
// # Why this is serialisable
//
// The holds of a tenure are one after another, each on the state that the one
// before has left. A commit succeeds only if the record is the one that the take has
// read, or that the commit before has written: no other process has written in between. So
// all holds up to its version took effect, in their order, at the moment of the commit:
// what a process reads afterwards contains them.
//
// # Why it is saved before it is answered
//
// No hold reports success before a commit that was sent after its end has stored its version, or
// one that was built on it. That goes for holds that changed nothing, too: what they read may be a
// version that is not stored yet, and if it never is, it must not be seen.
//
// # When a commit fails
//
// Then all versions that are not stored are void, and the error is that of every hold that made
// one or builds on one. The tenure is over; the next request in line acquires the lock and reads the
// record anew. If only the reply was lost, a version may be stored.
//
// If Redis has not answered at all, the waiters get the same error: they would find out the
// same, one after another, each after a timeout of its own.
//
// # Late commands
//
// A take that reaches Redis late, or again, may give the lock to its token a second time, after
// others had it. That blocks the session for a lease, or two if its commit comes late as well, and
// nothing else comes of it: such a commit finds its token, but not the record that it replaces.
// Records never come back, so a commit takes effect once, on what its holds have read, or never.
type tenure struct {
	engine *Engine
	id     string
	keys   sessionKeys
	lock   string // the lock's key, which is also that of the line
	terms  Terms  // of the request that acquired the lock

	mu   sync.Mutex // guards all below; before the lines' mutex; never held during a round trip
	idle sync.Cond  // sending became false, or over was set

	// What Redis has.
	term     lease.Term  // of the lock
	alarm    lease.Alarm // rings at rings; guarded by the lines' mutex
	rings    time.Time   // zero: it is not set
	began    time.Time   // when the lock was asked for
	heard    time.Time   // when Redis answered last
	asked    time.Time   // when it was asked that; see grant
	others   bool        // other processes wait, as of heard
	revision string      // of the record
	mark     any         // of a user's session, as it was read: a string, "" for a guest
	box      *box        // seals and opens the record
	sending  bool        // a round trip is under way
	silence  error       // of the last one, if Redis has not answered it
	since    time.Time   // the first of those that wait for the next commit waits since then; zero: there is none
	args     [9]any      // of the commit that is under way

	// The holds.
	hold    *Hold // the present one; nil: it is vacant
	begun   int   // holds so far
	vacated int   // who has left it vacant, and resolves that; for check
	over    error // why no more holds begin
	doubt   error // over, for the holds whose versions may be stored nevertheless; nil: over says it

	// The versions. Each hold that ends makes one, changed or not.
	record  Record // the newest state
	size    int32  // of its stored form; Redis takes 512 MB at most
	ended   bool   // it is a tombstone
	read    error  // the record that was read cannot be used, and was not replaced yet
	write   write  // what brings Redis up to date
	newest  int
	written int // the newest version that changed the record
	stored  int // the newest version that Redis has
}

// errFreed is that of a tenure whose lock was released. No hold sees it.
var errFreed = fmt.Errorf("%w: it was released", ErrLost)

// start begins a tenure that has acquired the lock, with its first hold.
func (t *tenure) start(h *Hold, won lease.Won) {
	t.mu.Lock()
	defer t.unlock()
	t.term.Begin(won, h.ticket.Options, nil)
	t.began, t.hold, t.begun = won.Sent, h, 1
	h.tenure, h.Record, h.first = t, t.record, true
	h.revision = won.Token[:revisionLength]
	t.rings = t.term.Renewal()
	t.engine.lines.Own(h.ticket.Key, lease.Holder{Token: won.Token}, &t.alarm, t, t.rings, t.term.End())
}

// begin makes h the present hold. It is called with mu held, before h's goroutine goes on.
func (t *tenure) begin(h *Hold) {
	h.tenure, h.Record = t, t.record
	t.hold, t.begun = h, t.begun+1
	now := time.Now()
	t.term.Limit(now, h.ticket.Options.MaxHold)
	t.renewInTime(now)
}

// admit is for a hold that was granted the session, once it runs. again: the session is of no use to it, and
// it must enter the line again. An error comes with a tenure if the record cannot be used.
func (t *tenure) admit(ctx context.Context, h *Hold) (again bool, err error) {
	t.mu.Lock()
	defer t.unlock()
	now := time.Now()
	switch {
	case t.over != nil: // what it was to build on is void
		again = true
	case h.first && ctx.Err() != nil:
		// Its caller has left after it waited for one round trip, and must not wait for another.
		again = true
		if !t.vacate(now) {
			t.fail(context.Cause(ctx), "")
		}
	case ctx.Err() != nil || !t.term.Held(now):
		t.leave(ctx, h, now)
		again = true
	case h.first:
		err = t.read
	case int(t.size) > h.terms.MaxBytes:
		err = fmt.Errorf("%w: the stored record has %d bytes", ErrTooLarge, t.size)
	case h.terms.expired(&t.record, now):
		t.leave(ctx, h, now)
		h.tenure, err = nil, fmt.Errorf("%s: %w", excerpt.Of(t.id), ErrNotFound)
	}
	if again {
		h.tenure, h.first, h.over = nil, false, false
	}
	return again, err
}

// # The end of a hold

// end ends a hold with a version of its own, and returns when that is stored, or never will be.
func (t *tenure) end(ctx context.Context, h *Hold, w write) error {
	t.mu.Lock()
	defer t.unlock()
	if h.over {
		return errReleased
	}
	h.over = true
	now := time.Now()
	if t.over == nil && !t.term.Held(now) {
		t.lose(t.term.Overdue(now))
	}
	if t.over != nil {
		return t.over
	}
	t.waitsSince(w.begun)
	if w.quiet && t.newest > t.stored {
		w.ttl, w.quiet = t.write.ttl, t.write.quiet // a version before it, which goes with it, may be a visitor's
	}
	t.newest++
	version := t.newest
	if !w.changed {
		t.write.ttl, t.write.quiet = w.ttl, w.quiet
	} else {
		t.record, t.size, t.write, t.read, t.ended = w.record, w.size, w, nil, w.ended
		t.written = version
	}
	early := t.vacate(now)
	if early {
		t.letRun()
	}
	t.settle(ctx, version, !early)
	if t.stored >= version {
		return nil
	}
	return cmp.Or(t.doubt, t.over, ErrLost)
}

// release ends a hold without a version. failed is the error of a round trip since begun, if there was
// one: if Redis has not answered that, no caller waits for another. If it fails, the lease ends by itself.
func (t *tenure) release(ctx context.Context, h *Hold, begun time.Time, failed error) {
	t.mu.Lock()
	defer t.unlock()
	if t.over == nil && scripting.TimedOut(failed) {
		t.fail(failed, "")
	}
	if h.terms.Quiet && t.newest == t.stored { // the visitors before it have had their time
		t.terms.Quiet, t.write.quiet = true, true
	}
	t.leave(ctx, h, begun)
}

// leave is release with mu held.
func (t *tenure) leave(ctx context.Context, h *Hold, begun time.Time) {
	if h.over || t.over != nil {
		h.over = true
		return
	}
	h.over = true
	if !t.vacate(time.Now()) {
		t.waitsSince(begun)
		t.settle(ctx, 0, true)
	}
}

// How far a process goes on before it hears from Redis again: by versions that are not
// stored yet, which a failed commit would take with it, and by time, since others may
// have begun to wait.
const (
	maxAhead   = 128
	maxUnheard = 10 * time.Millisecond
)

// vacate ends the present hold. If the next one can begin early, before Redis has the newest version, it
// does. A hold that ends and the next one's beginning are one step: a commit in between would keep
// the lock for the hold that ends, for longer than the next one may have it.
func (t *tenure) vacate(now time.Time) (early bool) {
	t.hold = nil
	next, waits := t.engine.lines.First(t.lock)
	return waits && t.mayPass(now) && t.term.Fresh(now) && t.newest-t.stored < maxAhead &&
		now.Sub(t.heard) < t.engine.maxUnheard && t.grant(next.Label)
}

// mayPass reports whether this process may keep the session for the next in its line.
func (t *tenure) mayPass(now time.Time) bool {
	quota := lease.Quota{Began: t.began, Holders: t.begun, Others: t.others}
	return !t.ended && t.read == nil && t.over == nil && !quota.Over(now)
}

// grant lets the next in line begin, if there is one, with this label. A user's session may be ended from
// elsewhere at any time, and a request that comes after that must not see it: so its record must have been
// found alive by a round trip that was sent since.
func (t *tenure) grant(label string) bool {
	since := lease.Anyone
	if t.keys.ofUser() {
		since = t.asked
	}
	return t.engine.lines.Next(t.lock, label, since, t.begin)
}

// # The end of a tenure

// lose ends the tenure when its lock is lost, or may be. What is under way may be stored: its outcome
// counts, and the commit sweeps.
func (t *tenure) lose(why error) {
	if t.sending {
		t.lapse(why)
	} else {
		t.fail(why, "")
	}
}

// fail ends the tenure: what is not stored is void. The lock may be left to the token that Redis
// has, or to next, so both are swept in the background: no caller waits for another round trip
// after one that has failed.
func (t *tenure) fail(why error, next string) {
	if t.over == nil && scripting.TimedOut(why) && !scripting.Moving(why) {
		t.engine.lines.Dismiss(t.lock, why) // before lapse, which calls the first of them
	}
	if t.over != nil && scripting.MaybeDone(why) { // the tenure lapsed during a commit
		t.doubt = fmt.Errorf("%w; a commit may have been done: %w", t.over, why)
	}
	t.lapse(why)
	t.sweep(t.term.Token, next)
}

// sweep frees the lock in the background, if it has one of these tokens.
func (t *tenure) sweep(tokens ...string) {
	e := t.engine
	t.engine.lines.Sweeper.Free(&e.locking, lease.Spin{Runner: e.runner}, t.lock, tokens...)
}

// lapse ends the tenure. The present hold has built on what is void.
func (t *tenure) lapse(why error) {
	if t.over != nil {
		return
	}
	t.over = why
	if t.hold != nil {
		t.hold.tell(why)
		t.hold = nil
	}
	t.engine.lines.Leave(t.lock, &t.alarm)
	t.idle.Broadcast()
}

// # The invariants

// checked is called whenever mu is given up; tests set it to check.
var checked = func(*tenure) {}

func (t *tenure) unlock() {
	checked(t)
	t.mu.Unlock()
}

// check returns the name of an invariant that is broken, or "".
func (t *tenure) check() string {
	switch {
	case t.hold != nil && (t.hold.tenure != t || t.hold.over):
		return "one hold"
	case t.stored > t.newest, t.written > t.newest:
		return "stored"
	case t.hold == nil && t.over == nil && t.vacated == 0:
		return "no orphan"
	case t.over != nil && t.hold != nil, t.term.Token == "" && t.over == nil:
		return "over"
	}
	return ""
}
