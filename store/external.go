package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker"
)

// An external is a hold under any other lock. That knows nothing of the record and may be
// elsewhere, so it neither fences a write nor keeps the record in use.
type external struct {
	base  string // the name of the record that was loaded
	inUse *inUse
}

// takeExternal takes a session under Options.Locker. A record that is there but cannot be
// used is an error although h.lease is set.
func takeExternal(ctx context.Context, h *Hold) error {
	s, terms := h.store, h.terms
	terms.MaxBytes = math.MaxInt32 // without the record there is no fence
	if _, err := s.load(ctx, h.id, terms); err != nil && !unusable(err) {
		return fmt.Errorf("%s: %w", h.id, err) // an unknown id takes no lock
	}
	e := &external{inUse: s.keepInUse(ctx, h)}
	l, err := s.lockExternal(ctx, h)
	if err != nil {
		e.inUse.stop()
		return err
	}
	h.fence, h.lease, h.stamp = e, l, rand.Text()
	text, err := s.load(ctx, h.id, terms)
	if err != nil && !unusable(err) {
		e.release(ctx, h, err) // nothing was read under it
		h.lease = nil
		return fmt.Errorf("%s: %w", h.id, err)
	}
	if e.base = foreignName; text != nil {
		e.base = recordName(text)
	}
	if err == nil && len(text) > h.terms.MaxBytes {
		err = fmt.Errorf("%w: the stored record has %d bytes", ErrTooLarge, len(text))
	}
	if err == nil {
		h.Record, err = parseRecord(text)
	}
	if err == nil && h.terms.expired(h.Record.Created, time.Now().Add(h.terms.TTL/3)) {
		e.inUse.soon() // Redis has it for no longer than its lifetime
	}
	return err
}

func (s *Store) lockExternal(ctx context.Context, h *Hold) (*lease.Lease, error) {
	if h.terms.Label != "" {
		ctx = locker.WithLabel(ctx, h.terms.Label)
	}
	waiting, cancel := context.WithTimeoutCause(ctx, h.terms.LockWait, ErrTimeout)
	defer cancel()
	l, err := s.options.Locker.Lock(waiting, s.keys(h.id)[1])
	if err != nil {
		return nil, waitError(waiting, err)
	}
	return (*lease.Lease)(l), nil
}

// waitError returns the error of a Lock, and sees to it that it wraps the cause
// of the wait's end if that is over. It may have ended in the middle of an
// exchange with Redis, whose error says nothing of a wait.
func waitError(waiting context.Context, err error) error {
	if end, _ := waiting.Deadline(); !time.Now().Before(end) {
		<-waiting.Done() // the context's timer may be a little late
	}
	if cause := context.Cause(waiting); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// end implements [fence].
func (e *external) end(ctx context.Context, h *Hold, w write) error {
	if h.over {
		return ErrLost // it was given back before
	}
	h.over = true
	if w.text == nil {
		e.inUse.stop()
		return h.lease.Unlock(ctx)
	}
	_, err := committed(h.store.runner.Run(ctx, replaceScript, h.store.keys(h.id)[:1], e.base, w.text, w.ttl))
	e.release(ctx, h, err) // the fence has decided; the lock has no say in it
	return err
}

// release implements [fence].
func (e *external) release(ctx context.Context, h *Hold, failed error) {
	h.over = true
	e.inUse.stop()
	if !scripting.Unanswered(failed) {
		_ = h.lease.Unlock(ctx)
		return
	}
	l := h.lease
	l.Dismiss(failed)
	time.AfterFunc(0, func() { _ = l.Unlock(context.WithoutCancel(ctx)) })
}

// An inUse keeps a session from running out while it is waited for or held under a lock
// that knows nothing of the record: a timer extends its idle timeout, now and then, until
// it is stopped. Most holds end before the first time.
type inUse struct {
	mu      sync.Mutex // guards what follows
	timer   *time.Timer
	stopped bool
}

// keepInUse starts one for a hold that may still be waiting for its lock. Each extension is
// one exchange. If one fails there is another chance before the timeout, and then the fence.
func (s *Store) keepInUse(ctx context.Context, h *Hold) *inUse {
	ctx, id, terms := context.WithoutCancel(ctx), h.id, h.terms
	terms.Lifetime = math.MaxInt64 // which may end while the session is held
	every := max(terms.TTL/3, time.Millisecond)
	u := new(inUse)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.timer = time.AfterFunc(every, func() {
		_, _ = s.load(ctx, id, terms)
		u.mu.Lock()
		defer u.mu.Unlock()
		if !u.stopped {
			u.timer.Reset(every)
		}
	})
	return u
}

// soon makes the next extension happen at once.
func (u *inUse) soon() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.stopped {
		u.timer.Reset(0)
	}
}

// stop ends it. Only a last exchange may be under way.
func (u *inUse) stop() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.stopped = true
	u.timer.Stop()
}
