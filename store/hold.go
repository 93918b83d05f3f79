package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker"
)

// errGivenBack is that of a Hold that is used again.
var errGivenBack = fmt.Errorf("%w: it was given back before", ErrLost)

// tombstoneTime is how long an ended id is remembered: longer than requests
// that were on their way when it ended.
const tombstoneTime = time.Minute

// A Hold is a session whose lock is held. Exactly one of Save, Touch, Release,
// Destroy and Renew gives it back; each of their exchanges with Redis is bounded
// by Options.Timeout. It is used by one goroutine at a time.
type Hold struct {
	// Record is what was read under the lock.
	Record Record
	// Memory is kept with the data that Save stores: see [Record].
	Memory any

	store  *Store
	id     string
	terms  Terms
	lease  *lease.Lease
	fence  fence
	stamp  string // of what this holder writes
	joined bool   // it follows another hold of its tenure
	over   bool   // it was given back, says its fence
}

// A fence gives a hold back, and writes its session only if nobody else has written that
// meanwhile. There are two: a tenure, for the lock next to the record, and an external, for
// others; the package's comment says why.
type fence interface {
	// end gives the hold back with what it leaves, or returns ErrLost.
	end(ctx context.Context, h *Hold, w write) error
	// release gives it back and leaves nothing. failed is the error of an exchange before, if there
	// was one: if Redis has not answered that, nobody waits for another. If it fails, the lease ends
	// by itself.
	release(ctx context.Context, h *Hold, failed error)
}

// A write is what a hold leaves in Redis.
type write struct {
	record Record // where it is changed
	text   []byte // its stored form; nil: it is not changed
	ttl    int64  // ms
	ended  bool   // it is a tombstone
}

// A request is what is allocated for one: its Hold, and how its lock is taken.
type request struct {
	Hold
	taking taking
}

// Take waits for the session's lock and reads its record, in one exchange. Where there is no
// record, no lock is kept: the error wraps [ErrNotFound] or [ErrGone]. Else it wraps
// [ErrTimeout], [ErrTooManyWaiters], [ErrUnavailable], or the cause of ctx's end.
//
// A record that cannot be used comes as an error that wraps [ErrCorrupt] or [ErrTooLarge]
// together with a Hold, so that the caller may replace the record; the Hold must be given back.
func (s *Store) Take(ctx context.Context, id string, t Terms) (*Hold, error) {
	terms, err := s.terms(t)
	both := new(request)
	h, k := &both.Hold, &both.taking
	h.store, h.id, h.terms = s, id, terms
	switch {
	case err != nil:
	case s.options.Locker != nil:
		err = takeExternal(ctx, h)
	default:
		k.Spin, k.store, k.id, k.keys, k.terms = lease.Spin{Runner: s.runner}, s, id, s.keys(id), &h.terms
		var l *lease.Lease
		l, err = s.group.Acquire(ctx, k.keys[1], k, s.lockingBy(&terms), terms.Label)
		for again := true; err == nil && again; {
			if again, err = l.Data().(*tenure).admit(ctx, h, l); again {
				l, err = l.Again()
			}
		}
	}
	if h.lease == nil {
		return nil, fmt.Errorf("store: taking a session: %w", err) // which names the key
	}
	if err != nil {
		h.Record = Record{Created: time.Now()}
		return h, failed("taking", id, err)
	}
	return h, nil
}

// lockingBy returns how the lock is taken by these terms.
func (s *Store) lockingBy(t *Terms) *lease.Options {
	wait, hold := t.LockWait, cmp.Or(t.MaxHold, s.locking.MaxHold)
	waiters := cmp.Or(t.MaxWaiters, s.locking.MaxWaiters)
	if o := s.latest.Load(); o != nil && o.Wait == wait && o.MaxHold == hold && o.MaxWaiters == waiters {
		return o
	}
	o := s.locking
	o.Wait, o.MaxHold, o.MaxWaiters = wait, hold, waiters
	s.latest.Store(&o)
	return &o
}

// OnLost arranges for cancel to be called with an [ErrLost] that says why when the lock is
// lost, in a goroutine of its own, or at once if it is lost already.
func (h *Hold) OnLost(cancel context.CancelCauseFunc) { h.lease.OnLost(cancel) }

// Save stores data and gives the session back. It keeps data, which must not be changed
// afterwards. The error wraps [ErrLost], [ErrTooLarge] or [ErrUnavailable]. If it wraps
// ErrUnavailable, the data may have been stored all the same, also where it wraps ErrLost: the
// reply to the commit was lost then, and its repetition was refused. With ErrLost or ErrTooLarge
// alone nothing was stored.
func (h *Hold) Save(ctx context.Context, data []byte) error {
	text, err := h.terms.record(h.stamp, h.Record.Created, data)
	if err != nil {
		h.Release(ctx)
		return failed("saving", h.id, err)
	}
	record := Record{Data: data, Created: h.Record.Created, Memory: h.Memory, name: h.stamp}
	w := write{record: record, text: text, ttl: h.terms.expiry(record.Created, time.Now())}
	if err = h.fence.end(ctx, h, w); err != nil {
		return failed("saving", h.id, err)
	}
	return nil
}

// Destroy ends the session and gives it back. Its id is remembered as gone for a
// minute. Errors as with Save.
func (h *Hold) Destroy(ctx context.Context) error {
	return failed("destroying", h.id, h.end(ctx))
}

// Renew stores data under a new id, ends the old one, and gives it back. The two ids are in two
// slots, so these are two steps: the new record first, which no visitor has the id of until the
// second step has succeeded; a crash between them leaves it until it times out. Errors as with
// Save. If the reply to the second step is lost for good, the old id may be dead although Renew
// fails, and the session with it: ending one too many is the safe side.
func (h *Hold) Renew(ctx context.Context, id string, data []byte) error {
	ctx = context.WithoutCancel(ctx) // like a commit: those who wait depend on its outcome
	err := h.store.create(ctx, id, h.stamp, h.Record.Created, data, h.terms)
	ambiguous := scripting.Ambiguous(err)
	if err != nil {
		h.fence.release(ctx, h, err)
	} else {
		err = h.end(ctx)
	}
	if err != nil { // tidiness only: nobody has the new id, and its record would time out
		s := h.store
		s.group.Sweep(s.locking, ambiguous, func(ctx context.Context) bool {
			_, err := s.runner.Run(ctx, dropScript, s.keys(id)[:1], h.stamp)
			return err == nil
		})
	}
	return failed("renewing", h.id, err)
}

// end leaves a tombstone.
func (h *Hold) end(ctx context.Context) error {
	w := write{record: Record{name: h.stamp}, text: formatTombstone(h.stamp, time.Now()), ended: true}
	w.ttl = tombstoneTime.Milliseconds()
	return h.fence.end(ctx, h, w)
}

// Touch extends the idle timeout and gives the session back. Nothing was to be written, so a lock
// that was lost is no error, unless what was read came from a request before this one and may not
// be what is stored: then it is [ErrLost]. Else the error can only be [ErrUnavailable].
func (h *Hold) Touch(ctx context.Context) error {
	err := h.fence.end(ctx, h, write{ttl: h.terms.expiry(h.Record.Created, time.Now())})
	// The request that took the lock has read what was stored then, and nothing can be wrong
	// with that afterwards. Those that followed it have read what is known to be stored, or
	// current, only if the lock was held until now.
	if !h.joined && (errors.Is(err, ErrLost) || errors.Is(err, locker.ErrExpired)) {
		err = nil
	}
	return failed("touching", h.id, err)
}

// Release gives the session back and leaves it as it was, as after a panic.
func (h *Hold) Release(ctx context.Context) { h.fence.release(ctx, h, nil) }

// failed returns the error of an operation on a session, or nil.
func failed(doing, id string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("store: %s %s: %w", doing, id, err)
}
