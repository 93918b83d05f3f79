package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/a2139e8d/latchkey/internal/excerpt"
	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker"
)

// An external is a hold under any other lock. That knows nothing of the record and may be
// elsewhere, so it neither fences a write nor keeps the record in use.
type external struct {
	base string             // the name of the record that was loaded
	box  *box               // seals and opens it
	stop context.CancelFunc // no longer keeps it in use
}

// takeExternal takes a session under Options.Locker. A record that is there but cannot be
// used is an error although h.lease is set.
func takeExternal(ctx context.Context, h *Hold) (err error) {
	s, terms := h.store, h.terms
	terms.MaxBytes = math.MaxInt32 // without the record there is no fence
	if terms.Quiet {
		terms.TTL = min(terms.TTL, locker.DefaultLease+outlast) // while it is in use, it goes on
	}
	text, err := s.load(ctx, h.id, terms)
	if err != nil && !unusable(err) {
		return fmt.Errorf("%s: %w", excerpt.Of(h.id), err) // an unknown id takes no lock
	}
	unending := terms
	unending.Lifetime = 0 // it may end while the session is held
	read, _, _, _ := parseHead(text, s.bond(h.id))
	e := &external{base: foreignName, box: s.box(h.id), stop: s.keepInUse(ctx, h.id, unending, min(terms.TTL, terms.idle(&read)))}
	taken := false
	defer func() { // also where the Locker or the client panics, or calls runtime.Goexit
		switch {
		case taken:
		case h.lease == nil:
			e.stop()
		default: // nothing was read under it
			e.release(ctx, h, time.Now(), err)
			h.lease = nil
		}
	}()
	h.lease, err = s.lockExternal(ctx, h)
	if err != nil {
		return err
	}
	h.fence, h.stamp = e, s.newStamp(h.id)
	text, err = s.load(ctx, h.id, terms)
	if err == nil {
		h.Record, err = parse(text, s.form(h.id))
		e.base = h.Record.name
		if len(text) > h.terms.MaxBytes {
			err = fmt.Errorf("%w: the stored record has %d bytes", ErrTooLarge, len(text))
		}
		if err == nil && h.terms.expired(&h.Record, time.Now().Add(terms.TTL/3)) {
			_, _ = s.load(ctx, h.id, unending) // Redis has it for no longer than its lifetime
		}
	}
	if err != nil && !unusable(err) {
		return fmt.Errorf("%s: %w", excerpt.Of(h.id), err)
	}
	taken = true
	return err
}

func (s *Store) lockExternal(ctx context.Context, h *Hold) (*lease.Lease, error) {
	if h.terms.Label != "" {
		ctx = locker.WithLabel(ctx, h.terms.Label)
	}
	waiting, cancel := context.WithTimeoutCause(ctx, h.terms.LockWait, ErrTimeout)
	defer cancel()
	l, err := s.options.Locker.Lock(waiting, s.recordKey(h.id)+".lock")
	if err != nil {
		return nil, waitError(waiting, err)
	}
	return (*lease.Lease)(l), nil
}

// waitError returns the error of a Lock, which wraps the cause of the wait's end if that is over:
// it may have ended in the middle of an exchange with Redis, whose error says nothing of a wait.
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
		return errGivenBack
	}
	h.over = true
	if !w.changed {
		e.stop()
		return h.lease.Unlock(ctx)
	}
	ctx = context.WithoutCancel(ctx)
	var err error
	defer func() { e.release(ctx, h, time.Now(), err) }() // the fence decides; the lock has no say in it
	keys := h.store.recordKeys(h.id)
	x := scripting.Exchange{Script: replaceScript, Keys: keys[:1]}
	base, ttl := quietly(e.base, w.ttl)
	x.Args = []any{base, stage(&x, w.record.name, w.text(e.box)), ttl}
	if w.ended {
		askToEnd(&x, keys)
	} else {
		ask(&x, keys)
	}
	var reply scripting.Reply
	_, reply, err = h.store.runner.Exchange(ctx, x)
	_, err = committed(reply, err)
	if errors.Is(err, lease.ErrEnded) && h.lease.Validity() == 0 {
		err = ErrLost // the next holder may have ended this id by a Renew, and the session goes on
	}
	return err
}

// release implements [fence].
func (e *external) release(ctx context.Context, h *Hold, _ time.Time, failed error) {
	h.over = true
	e.stop()
	if !scripting.Unanswered(failed) {
		_ = h.lease.Unlock(ctx)
		return
	}
	l := h.lease
	l.Dismiss(failed)
	time.AfterFunc(0, func() { _ = l.Unlock(context.WithoutCancel(ctx)) })
}

// keepInUse keeps a session from running out while it is waited for or held under a lock that
// knows nothing of the record: until it is stopped, it extends the idle timeout now and then. If
// that fails there is another chance before the timeout, and then the fence.
func (s *Store) keepInUse(ctx context.Context, id string, t Terms, idle time.Duration) (stop context.CancelFunc) {
	ctx, stop = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		ticker := time.NewTicker(max(idle/3, time.Millisecond))
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				_, _ = s.load(ctx, id, t)
			case <-ctx.Done():
				return
			}
		}
	}()
	return stop
}
