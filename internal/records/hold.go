package records

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/internal/excerpt"
	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker"
)

// errReleased is the error of a Hold that is used after its end.
var errReleased = fmt.Errorf("%w: it was released before", ErrLost)

// tombstoneTime is how long an ended ID is remembered: longer than any request takes that was on its way when
// the ID ended.
const tombstoneTime = time.Minute

// A Hold is a session that a request has locked. Exactly one of Save, Touch, Release, Destroy and Renew ends
// it. Each of their round trips is bounded by Options.Timeout, and does not end with ctx. One goroutine at a
// time may use a Hold.
type Hold struct {
	// Record was read under the lock. Its Own may be replaced: Save and Renew store the new one. Before a
	// Renew to an ID with a user's tag, User and Device may be replaced, too.
	Record Record

	engine   *Engine
	id       string
	terms    Terms
	ticket   lease.Ticket[*Hold]
	tenure   *tenure // set by start or begin, before the hold's goroutine goes on
	revision string  // of the record that the hold writes; "": not chosen yet
	first    bool    // the hold has acquired the lock; otherwise it follows another hold of its tenure

	// Guarded by the tenure's mu.
	over   bool // the hold has ended
	onLost context.CancelCauseFunc
}

// A write is what a hold leaves in Redis.
type write struct {
	record  Record    // of a tombstone: its revision, its time, and the part that names the successor as Data
	size    int32     // of the stored form; of a tombstone 0
	ttl     int64     // ms
	quiet   bool      // the record must not live longer than it would without the write; see Terms.Quiet
	changed bool      // there is a record to write
	ended   bool      // the record is a tombstone
	begun   time.Time // when the hold began to end
}

// A visit is one allocation for a hold and its taking. It has 888 bytes, which Go allocates as 896. With one more word
// Go would allocate 1,024 bytes, which costs each request 2 µs.
type visit struct {
	Hold
	taking taking
}

// Take acquires the session's lock and reads its record, in one round trip. If there is no record, no lock is
// kept, and the error wraps [ErrNotFound] or [ErrGone]. Otherwise an error wraps [ErrTimeout],
// [ErrTooManyWaiters], [ErrUnavailable], or the cause of ctx's end.
//
// If the record cannot be used, Take returns an error that wraps [ErrCorrupt] or [ErrTooLarge], together with
// a Hold, so that the caller may replace the record. The caller must end that Hold. If the record does not
// reveal its user, Save fails, and Renew creates a session without a user.
//
// If there are observers, the Wait tells them what the call has waited for, also if that was in vain.
func (s *Engine) Take(ctx context.Context, id string, t Terms) (_ *Hold, w Wait, _ error) {
	terms, err := s.terms(t)
	v := new(visit)
	h, k := &v.Hold, &v.taking
	h.engine, h.id, h.terms = s, id, terms
	if err == nil {
		k.Spin, k.hold, k.keys = lease.Spin{Runner: s.runner}, h, s.keys(id)
		h.ticket = lease.Ticket[*Hold]{Who: h, Key: k.keys.lock.(string), Label: terms.Label, Options: s.lockingBy(&terms), Context: ctx}
	}
	for again := err == nil; again; {
		var head bool
		head, err = s.lines.Enter(&h.ticket)
		if head && err == nil {
			var won lease.Won
			won, err = h.ticket.Compete(k)
			if err == nil {
				k.tenure.start(h, won)
			}
		}
		if err != nil {
			break
		}
		again, err = h.tenure.admit(ctx, h) // an error comes with a tenure if the record cannot be used
	}
	if s.observed() {
		w = waitOf(h)
	}
	if h.tenure == nil {
		return nil, w, fmt.Errorf("store: taking a session: %w", err) // which names the key
	}
	if err != nil {
		h.Record = Record{Created: time.Now(), Own: h.terms.Guest()}
		return h, w, failed("taking", id, err)
	}
	return h, w, nil
}

// lockingBy returns how the lock is acquired by these terms. The last result is used again if it fits: a new
// field must be compared, too.
func (s *Engine) lockingBy(t *Terms) *lease.Options {
	wait, hold := t.LockWait, cmp.Or(t.MaxHold, s.locking.MaxHold)
	waiters := cmp.Or(t.MaxWaiters, s.locking.MaxWaiters)
	if o := s.latest.Load(); o != nil && o.Wait == wait && o.MaxHold == hold && o.MaxWaiters == waiters {
		return o
	}
	o := s.locking
	o.Wait, o.MaxHold, o.MaxWaiters = wait, hold, waiters
	o = o.WithDefaults()
	s.latest.Store(&o)
	return &o
}

// OnLost registers cancel, which is called with an [ErrLost] that tells the reason when the lock is lost. The
// call is made in a new goroutine, or by OnLost itself if the lock is lost already. A later call of OnLost
// replaces cancel.
func (h *Hold) OnLost(cancel context.CancelCauseFunc) {
	t := h.tenure
	t.mu.Lock()
	lost := t.over != nil && !h.over
	h.onLost = cancel
	why := t.over
	t.unlock()
	if lost {
		cancel(lease.WhyLost(why))
	}
}

// tell tells the holder that the lock is lost. It is called with the tenure's mu held.
func (h *Hold) tell(why error) {
	if h.onLost != nil {
		go lease.Tell(h.onLost, lease.WhyLost(why))
	}
}

// Save stores data and ends the hold. It keeps data, which must not change afterwards. The error wraps
// [ErrLost], [ErrTooLarge] or [ErrUnavailable].
//
// If it wraps ErrUnavailable, the data may have been stored, even if it wraps ErrLost as well: then the reply
// to the commit was lost, and its repetition was refused. With ErrTooLarge alone nothing was stored. With
// ErrLost alone nothing was stored so far. But if the network has made copies of both the take and the
// commit, and these arrive later, while the session is free and before another write, they store the data.
func (h *Hold) Save(ctx context.Context, data []byte) error { return h.SaveContent(ctx, encoded(data)) }

// SaveContent is like Save, but encodes c only when, and if, it is sent. c must not change afterwards.
func (h *Hold) SaveContent(ctx context.Context, c Content) error {
	defer h.letGo(ctx)
	record := h.Record
	record.Data, record.Content, record.revision = nil, c, h.newRevision()
	if data, ok := c.(encoded); ok {
		record.Data, record.Content = data, nil
	}
	size := h.engine.sizeOf(record)
	err := h.terms.fits(size)
	if _, _, ofUser := cutTag(h.id); ofUser != (record.User != "") {
		err = errTag // no process could read it
	}
	if err != nil {
		h.Release(ctx)
		return failed("saving", h.id, err)
	}
	begun := time.Now()
	w := write{begun: begun, changed: true, record: record, size: int32(size), ttl: h.terms.expiry(&record, begun), quiet: h.terms.Quiet}
	err = h.tenure.end(ctx, h, w)
	if err == nil {
		h.engine.sized(ctx, size)
	}
	return failed("saving", h.id, err)
}

// Destroy ends the session, and the hold. The ID is remembered as gone for a minute. The errors are those of
// Save, and [ErrGone] alone if another request has ended the session and what this hold has read was stored.
func (h *Hold) Destroy(ctx context.Context) error {
	err := h.bury(ctx, time.Now(), nil)
	// A hold that follows another one may have read a version that was never stored. Its response must not
	// show that.
	if errors.Is(err, errEnded) && !errors.Is(err, ErrUnavailable) && h.first {
		err = ErrGone
	}
	return failed("destroying", h.id, err)
}

// Renew stores data under a new ID, and ends the old ID and the hold. The two IDs are in two slots, so these
// are two steps. The first step writes the new record; no visitor has its ID until the second step has
// succeeded. A crash between them leaves the new record until it expires. The errors are those of Save. If
// the reply to the second step is lost, the old ID may be dead although Renew fails, and with it the session:
// in doubt the session is ended.
//
// The new record keeps Until of Record.Own, and not Idle, with one exception: if a user's record could not be used and
// was replaced by one without a User, it keeps both.
func (h *Hold) Renew(ctx context.Context, id string, data []byte) error {
	defer h.letGo(ctx)
	ctx, begun := context.WithoutCancel(ctx), time.Now() // like a commit: the waiters depend on its outcome
	if _, _, ofUser := cutTag(h.id); !ofUser || h.Record.User != "" {
		h.Record.Own = h.Record.Own.renewed()
	} // otherwise the user's record was replaced, and the session is a guest's
	record := h.Record
	record.Data, record.Content, record.revision, record.epoch = data, nil, h.engine.newRevision(id), ""
	err := h.engine.create(ctx, id, h.id, record, h.terms)
	ambiguous := scripting.MaybeDone(err)
	if err != nil {
		h.tenure.release(ctx, h, begun, err)
	} else {
		err = h.bury(ctx, begun, h.successor(id))
	}
	if err != nil {
		h.engine.dropLater(id, record.revision, ambiguous)
	}
	return failed("renewing", h.id, err)
}

// successor returns the part of the tombstone that names the new ID. A user's session that could not be read has no
// successor: it was replaced, and did not move.
func (h *Hold) successor(id string) []byte {
	if _, _, ofUser := cutTag(h.id); ofUser && h.Record.User == "" {
		return nil
	}
	return nameSuccessor(h.engine.box(h.id), id)
}

// bury ends the hold and leaves a tombstone, with the part that names a successor. For begun see write.
func (h *Hold) bury(ctx context.Context, begun time.Time, to []byte) error {
	tombstone := Record{Created: h.engine.clock.at(time.Now()), Data: to, revision: h.newRevision()}
	return h.tenure.end(ctx, h, write{changed: true, record: tombstone, ended: true, begun: begun, ttl: tombstoneTime.Milliseconds()})
}

// Touch ends the hold without a write, and extends the idle timeout, unless Terms.Quiet is set. Because nothing
// needs to be written, a lost lock is not an error, with one exception: if this hold follows another one, what
// it has read may never have been stored, and the error is [ErrLost]. Any other error is [ErrUnavailable].
func (h *Hold) Touch(ctx context.Context) error {
	begun := time.Now()
	err := h.tenure.end(ctx, h, write{begun: begun, ttl: h.terms.expiry(&h.Record, begun), quiet: h.terms.Quiet})
	// The hold that acquired the lock has read what was stored at that time. A later hold has read what the
	// hold before it left. That version is known to be stored only if the lock was held until now.
	if h.first && (errors.Is(err, ErrLost) || errors.Is(err, locker.ErrExpired)) {
		err = nil
	}
	return failed("touching", h.id, err)
}

// newRevision returns the revision of what the hold writes. A hold writes once.
func (h *Hold) newRevision() string {
	if h.revision == "" {
		h.revision = h.engine.newRevision(h.id)
	}
	return h.revision
}

// Release ends the hold and leaves the session as it was: after a panic, for example. Like a commit, it does not end with
// ctx: others wait for the session.
func (h *Hold) Release(ctx context.Context) { h.tenure.release(ctx, h, time.Now(), nil) }

// GiveUp is Release after a round trip of the hold's request, which has begun at begun and has failed. If Redis did not
// reply to that, GiveUp does not wait for Redis again. Otherwise both together take no longer than a commit.
func (h *Hold) GiveUp(ctx context.Context, begun time.Time, failed error) {
	h.tenure.release(ctx, h, begun, failed)
}

// letGo ends a hold that nothing else has ended: a Content has panicked, or the client has called
// runtime.Goexit.
func (h *Hold) letGo(ctx context.Context) {
	if !h.over {
		h.Release(ctx)
	}
}

// failed returns the error of an operation on a session, or nil.
func failed(doing, id string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("store: %s %s: %w", doing, excerpt.Of(id), err)
}
