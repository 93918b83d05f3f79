package records

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/internal/excerpt"
	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// A tenure is the time in which one process has one session. It begins with the round trip that acquires the
// lock and reads the record. It ends with the round trip that releases the lock. In between, requests of the
// process hold the session one after another, and each hold builds on the state in memory. The tenure owns the
// session's line.
//
// # States
//
//	  start             end, release            begin: at once, or after a commit
//	──────────▶ occupied ─────────────▶ vacant ───────────────────────────────────▶ occupied
//	               │                      │
//	               │                      ├── a commit releases the lock ─────────▶ over (errFreed)
//	               │                      ▼
//	               └── a commit fails, or the lock is lost ───────────────────────▶ over (the reason)
//
// Besides, at most one round trip is under way: a commit, or an extension of the lock.
//
// Invariant (one hold): at most one hold is present. When a hold begins, the hold before it has ended, and the
// newest version contains what that hold left.
// Invariant (one round trip): sending is true from before a round trip is sent until its outcome is noted in
// term, revision and stored. So while sending is false and the tenure is not over, the process knows what Redis
// has.
// Invariant (stored): stored <= newest and written <= newest. Redis has version stored or, during a commit, maybe
// the version that the commit carries.
// Invariant (saved before success): end returns nil only if stored has reached the version that end made.
// Invariant (no orphan): a goroutine that leaves the tenure vacant goes on until the next hold has begun or the
// tenure is over.
// Invariant (over): once over is set, no hold is present, no hold begins, and no version is made. A commit that
// is under way still counts.
// Invariant (the line moves on): a tenure calls lines.Leave exactly once, when it is over.
//
// Whenever mu is unlocked, check tests what the fields show of them. The files in transcripts/ tell the protocol
// step by step, and a test compares them with what happens.
//
// # Pipeline and group commit
//
// When a hold ends, its version of the record becomes the newest. The next request in line begins on that version
// at once, while the version is still on its way to Redis. Versions that are made while a commit is under way are
// stored together by the next commit, since the newest version contains the others. maxAhead and maxUnheard bound
// how far the requests may run ahead of Redis.
//
// # Why this is serialisable
//
// The holds of a tenure run one after another, each on the state that the hold before it has left. A commit
// succeeds only if Redis has the record that the take has read, or that the commit before has written. So no other
// process has written in between. Therefore all holds up to the commit's version take effect at the moment of the
// commit, in their order, and a process that reads later sees all of them.
//
// # Why a session is saved before its response
//
// A hold reports success only after a commit has stored its version, or a later version, which builds on it. The
// commit was sent after the hold had ended. The rule also holds for a hold that changed nothing, since it may have
// read a version that is not stored yet. If that version is never stored, no response must show it.
//
// # When a commit fails
//
// All versions that are not stored are void. Every hold that made one of them, or built on one, gets the error of
// the commit. The tenure is over. The next request in line acquires the lock and reads the record anew. If only
// the reply was lost, a version may be stored nevertheless.
//
// If Redis did not reply at all, the waiters get the same error. Otherwise each of them would wait for a timeout,
// one after another, to learn the same.
//
// # Late commands
//
// A take that reaches Redis late, or twice, may give the lock to its token again after others had it. That blocks
// the session for one lease, or for two if the tenure's commit comes late as well. It does no other harm: such a
// commit finds its token in the lock, but not the record that it replaces. A record never comes back. So a commit
// takes effect once, on the record that its holds have read, or never.
type tenure struct {
	engine *Engine
	id     string
	keys   sessionKeys
	lock   string // the lock's key, which is also that of the line
	terms  Terms  // of the request that acquired the lock

	mu   sync.Mutex // guards all below; is locked before the lines' mutex; never held during a round trip
	idle sync.Cond  // signals that sending became false, or that over was set

	// What Redis has.
	term        lease.Term  // of the lock
	alarm       lease.Alarm // for the next renewal, at rings; guarded by the lines' mutex
	rings       time.Time   // zero: it is not set
	began       time.Time   // when the lock was asked for
	sentAt      time.Time   // when the take or the last commit was sent; see grant
	repliedAt   time.Time   // when its reply arrived
	others      bool        // other processes wait, as of repliedAt
	revision    string      // of the record
	mark        any         // of a user's session, as it was read; "" for a guest
	box         *box        // seals and opens the record
	sending     bool        // a round trip is under way
	silence     error       // the error of the last round trip, if Redis did not reply in time
	endingSince time.Time   // when the first hold that waits for the next commit began to end; zero: no hold waits
	args        [9]any      // of the commit that is under way

	// The holds.
	hold    *Hold // the present one; nil: it is vacant
	holders int   // number of holds so far
	vacated int   // goroutines that have left the tenure vacant, and go on; for check
	over    error // why the tenure is over; nil: it is not
	doubt   error // replaces over as the error of holds whose versions may be stored nevertheless

	// The versions. Each hold that ends makes a version, even if it changed nothing.
	record   Record    // the newest state
	size     int32     // of its stored form; Redis takes 512 MB at most
	unusable error     // why the record that was read cannot be used; nil once it is replaced
	ended    bool      // the newest state is a tombstone
	ttl      int64     // with which the next commit stores it, in ms
	idleEnd  time.Time // when the record would expire if a quiet take had not extended it; zero: unknown
	quiet    bool      // the next commit must not make the record live longer; see Terms.Quiet
	visited  time.Time // when a visitor's hold has ended without a version: ttl counts from then; zero: none since the last commit
	newest   int
	written  int // the newest version that changed the record
	stored   int // the newest version that Redis has
}

// errFreed is the reason of a tenure that has released its lock. No hold gets it.
var errFreed = fmt.Errorf("%w: it was released", ErrLost)

// start begins a tenure that has acquired the lock, with its first hold.
func (t *tenure) start(h *Hold, won lease.Won) {
	t.mu.Lock()
	defer t.unlock()
	t.term.Begin(won, h.ticket.Options, nil)
	t.began, t.hold, t.holders = won.Sent, h, 1
	h.tenure, h.Record, h.first = t, t.record, true
	h.revision = won.Token[:revisionLength]
	t.rings = t.term.Renewal()
	t.engine.lines.Own(h.ticket.Key, lease.Holder{Token: won.Token}, &t.alarm, t, t.rings, t.term.End())
}

// begin makes h the present hold. It is called with mu held, before h's goroutine continues.
func (t *tenure) begin(h *Hold) {
	h.tenure, h.Record = t, t.record
	t.hold, t.holders = h, t.holders+1
	t.term.Limit(time.Now(), h.ticket.Options.MaxHold)
	t.renewInTime()
}

// admit decides whether h, which was granted the session, can use it. Its goroutine calls admit first. If
// again is true, h cannot use the session, and must enter the line again. If the record cannot be used, admit
// returns an error, and h keeps its tenure.
func (t *tenure) admit(ctx context.Context, h *Hold) (again bool, err error) {
	t.mu.Lock()
	defer t.unlock()
	now := time.Now()
	switch {
	case t.over != nil: // the version that h would build on is void
		again = true
	case h.first && ctx.Err() != nil:
		// The caller has left, after it waited for one round trip. It must not wait for another.
		again = true
		if t.vacate(now) {
			t.fail(ctx.Err(), "") // and not the cause, which may be the silence of another Redis
		}
	case ctx.Err() != nil || !t.term.Held(now):
		t.leave(ctx, h, now)
		again = true
	case h.first:
		err = t.unusable
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

// end ends a hold, which makes a version. It returns when that version is stored, or cannot be stored any
// more.
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
	if w.quiet && (t.newest > t.stored || !t.visited.IsZero()) {
		w.ttl, w.quiet = t.ttl, t.quiet // the commit is also for earlier holds, which may be a visitor's
	} else {
		t.visited = time.Time{}
	}
	t.newest++
	version := t.newest
	t.ttl, t.quiet = w.ttl, w.quiet
	if w.changed {
		t.record, t.size, t.ended, t.unusable = w.record, w.size, w.ended, nil
		t.written = version
	}
	vacant := t.vacate(now)
	if !vacant {
		t.letRun()
	}
	t.settle(ctx, version, vacant)
	if t.stored >= version {
		return nil
	}
	why := cmp.Or(t.doubt, t.over, ErrLost)
	if errors.Is(why, ErrLost) { // lapse has told only the next hold
		t.engine.lost(h, why, true)
	}
	return why
}

// release ends a hold without a version. failed is the error of a round trip that was sent after begun, or
// nil. If Redis did not reply to it, the caller does not wait for another. If the release itself fails, the
// lease expires.
func (t *tenure) release(ctx context.Context, h *Hold, begun time.Time, failed error) {
	t.mu.Lock()
	defer t.unlock()
	if t.over == nil && scripting.TimedOut(failed) {
		t.fail(failed, "")
	}
	switch {
	case h.over || t.over != nil:
	case !h.terms.Quiet: // a visitor has used the session
		t.terms.Quiet = false
		if now := time.Now(); !t.ended {
			t.quiet, t.ttl, t.visited = false, h.terms.expiry(&t.record, now), now
		}
	case t.newest == t.stored && t.visited.IsZero(): // all visitors' versions are stored, with their timeouts
		t.terms.Quiet, t.quiet = true, true
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
	if t.vacate(time.Now()) {
		t.waitsSince(begun)
		t.settle(ctx, 0, true)
	}
}

// How far the requests of a process may run ahead of Redis: by versions that are not stored yet, since a
// commit that fails loses them all, and by time, since other processes may have begun to wait.
const (
	maxAhead   = 128
	maxUnheard = 10 * time.Millisecond
)

// vacate ends the present hold. If the next request in line may begin early, before Redis has the newest
// version, its hold begins, and vacate returns false. Both are one step: mu is not unlocked in between, since a
// commit then might extend the lock for as long as the old hold may have it, which may be longer than the new
// hold may.
func (t *tenure) vacate(now time.Time) (vacant bool) {
	t.hold = nil
	next, waits := t.engine.lines.First(t.lock)
	early := waits && t.mayPass(now) && t.term.Fresh(now) && t.newest-t.stored < maxAhead &&
		now.Sub(t.repliedAt) < t.engine.maxUnheard && t.grant(next.Label)
	return !early
}

// mayPass reports whether this process may keep the session for the next request in its line.
func (t *tenure) mayPass(now time.Time) bool {
	quota := lease.Quota{Began: t.began, Holders: t.holders, Others: t.others}
	return !t.ended && t.unusable == nil && t.over == nil && !quota.Over(now)
}

// grant lets the first request in line begin, if it has this label. A user's session may be ended by another
// process at any time, and a request that arrives after that must not see the session. So it may begin only
// if a round trip that was sent after its arrival has found the session alive.
func (t *tenure) grant(label string) bool {
	since := lease.Anyone
	if t.keys.ofUser() {
		since = t.sentAt
	}
	return t.engine.lines.Next(t.lock, label, since, t.begin)
}

// # The end of a tenure

// lose ends the tenure if its lock is lost, or may be. If a commit is under way, its outcome counts, and
// commit sweeps the lock.
func (t *tenure) lose(why error) {
	if t.sending {
		t.lapse(why)
	} else {
		t.fail(why, "")
	}
}

// fail ends the tenure. Versions that are not stored are void. The lock may still have the present token, or
// next. Both are swept in the background, so that no caller waits for another round trip after one that has
// failed.
func (t *tenure) fail(why error, next string) {
	if t.over == nil && scripting.TimedOut(why) && !scripting.Moving(why) {
		t.engine.lines.Dismiss(t.lock, why) // before lapse, which makes the first waiter the head
	}
	if t.over != nil && scripting.MaybeDone(why) { // the tenure was over before the commit failed
		t.doubt = fmt.Errorf("%w; a commit may have been done: %w", t.over, why)
	}
	t.lapse(why)
	t.sweep(!errors.Is(why, transport.ErrRefused), t.term.Token, next)
}

// sweep releases the lock in the background, if it has one of these tokens. Unless it is certain that nothing was done, that
// is repeated for one lease: a command may still be on its way, and a replica that has not heard its master yet says of
// each lock that it is lost.
func (t *tenure) sweep(maybeDone bool, tokens ...string) {
	e := t.engine
	e.lines.Sweeper.Free(&e.locking, maybeDone, lease.Spin{Runner: e.runner}, t.lock, tokens...)
}

// lapse ends the tenure, and tells the present hold, which can save nothing any more.
func (t *tenure) lapse(reason error) {
	if t.over != nil {
		return
	}
	t.over = reason
	if t.hold != nil {
		t.engine.lost(t.hold, reason, t.hold.over) // over: its own commit has found it
		t.hold.tell(reason)
		t.hold = nil
	}
	t.engine.lines.Leave(t.lock, &t.alarm)
	t.idle.Broadcast()
}

// # The invariants

// checked is called whenever mu is unlocked. Tests make it call check.
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
