package store

import (
	"context"
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/locker"
)

// tombstoneTime is how long an ended id is remembered: longer than requests
// that were on their way when it ended.
const tombstoneTime = time.Minute

// A Hold is a session whose lock is held. Exactly one of Save, Touch, Release,
// Destroy and Renew gives it back; each of their exchanges with Redis is bounded
// by Options.Timeout. It is used by one goroutine at a time.
type Hold struct {
	// Record is what was read under the lock.
	Record Record

	store  *Store
	id     string
	terms  Terms
	lease  *locker.Lease
	memory any    // that came with Record
	stamp  string // of what this holder writes
	fence  fence
	joined bool   // tenure: it follows another hold of this process
	over   bool   // tenure: it was given back
	base   string // under: the name of the record that was loaded
	inUse  *inUse // under: keeps it from running out
}

// Take waits for the session's lock and reads its record, as one. Where there is
// no record, no lock is taken: the error wraps [ErrNotFound] or [ErrGone]. Else
// it wraps [ErrTimeout], [ErrTooManyWaiters], [ErrUnavailable], or the cause of
// ctx's end.
//
// A record that cannot be used comes as an error that wraps [ErrCorrupt] or
// [ErrTooLarge] together with a Hold, so that the caller may replace the record;
// the Hold must be given back.
func (s *Store) Take(ctx context.Context, id string, t Terms) (*Hold, error) {
	var both struct { // as one, since they are made together and often
		hold   Hold
		tenure tenure
	}
	h := &both.hold
	h.store, h.id, h.terms, h.fence = s, id, t.withDefaults(), &both.tenure
	if s.options.Locker != nil {
		h.fence = under{s.options.Locker}
	}
	err := h.fence.take(ctx, h)
	if h.lease == nil {
		return nil, fmt.Errorf("store: taking a session: %w", err) // which names the key
	}
	h.memory = h.Record.Memory
	if err != nil {
		h.Record = Record{Created: time.Now()}
		return h, fmt.Errorf("store: taking %s: %w", id, err)
	}
	return h, nil
}

// OnLost arranges for cancel to be called with [ErrLost] when the lock is lost.
func (h *Hold) OnLost(cancel context.CancelCauseFunc) { h.lease.OnLost(cancel) }

// Save stores data and gives the session back. It keeps data, which must not be
// changed afterwards, and h.Record.Memory, if that was set anew. The error wraps
// [ErrLost], [ErrTooLarge] or [ErrUnavailable]. If it wraps ErrUnavailable, the data may
// have been stored all the same, also where it wraps ErrLost: the reply to the commit was
// lost then, and its repetition was refused. With ErrLost or ErrTooLarge alone nothing was
// stored.
func (h *Hold) Save(ctx context.Context, data []byte) error {
	text, err := h.terms.record(h.stamp, h.Record.Created, data)
	if err != nil {
		h.Release(ctx)
	} else {
		record := Record{Data: data, Created: h.Record.Created, Memory: h.Record.Memory}
		if record.Memory == h.memory {
			record.Memory = nil // it is that of other data
		}
		err = h.fence.save(ctx, h, record, write{text, h.stamp, h.ttl()})
	}
	if err != nil {
		return fmt.Errorf("store: saving %s: %w", h.id, err)
	}
	return nil
}

// Destroy ends the session and gives it back. Its id is remembered as gone for a
// minute. Errors as with Save.
func (h *Hold) Destroy(ctx context.Context) error {
	if err := h.bury(ctx); err != nil {
		return fmt.Errorf("store: destroying %s: %w", h.id, err)
	}
	return nil
}

// Renew stores data under a new id, ends the old one, and gives it back. The two
// ids are in two slots, so these are two steps: the new record first, which
// nobody knows about until the second step has succeeded. A crash between them
// leaves a record that no visitor has the id of, until it times out. Errors as
// with Save. If the reply to the second step is lost for good, the old id may be
// dead although Renew fails, and the session with it: ending one too many is the
// safe side.
func (h *Hold) Renew(ctx context.Context, id string, data []byte) error {
	err := h.store.create(ctx, id, h.stamp, h.Record.Created, data, h.terms)
	if err != nil {
		h.fence.abandon(ctx, h, err)
	} else {
		err = h.bury(ctx)
	}
	if err != nil {
		h.store.dropLater(id, h.stamp)
		return fmt.Errorf("store: renewing %s: %w", h.id, err)
	}
	return nil
}

// dropLater removes a new record that came to nothing, in the background. It is tidiness
// only: nobody has the id, and if this fails the record times out.
func (s *Store) dropLater(id, stamp string) {
	time.AfterFunc(0, func() {
		_, _ = s.client.Eval(context.Background(), dropScript, locker.Keys{s.recordKey(id)}, stamp)
	})
}

func (h *Hold) bury(ctx context.Context) error {
	return h.fence.bury(ctx, h, write{formatTombstone(h.stamp, time.Now()), h.stamp, tombstoneTime.Milliseconds()})
}

// Touch puts the idle time-out off and gives the session back. Nothing was to be
// written, so a lock that was lost is no error, unless what was read came from a
// request before this one and may not be what is stored: then it is [ErrLost]. Else
// the error can only be [ErrUnavailable].
func (h *Hold) Touch(ctx context.Context) error {
	if err := h.fence.touch(ctx, h, h.ttl()); err != nil {
		return fmt.Errorf("store: touching %s: %w", h.id, err)
	}
	return nil
}

// Release gives the session back and leaves it as it was, as after a panic.
func (h *Hold) Release(ctx context.Context) { h.fence.release(ctx, h) }

func (h *Hold) ttl() int64 { return h.terms.expiry(h.Record.Created, time.Now()) }
