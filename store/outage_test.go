package store

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// shortly is the Timeout of tests in which it passes. All other times are far
// longer, so what ends within a few of it has ended by it.
const shortly = time.Second

// wantSoon checks that f, which meets a silent Redis, fails by its Timeout.
func wantSoon(t *testing.T, what string, f func() error) {
	t.Helper()
	begin := time.Now()
	wantError(t, what, f(), ErrUnavailable)
	if took := time.Since(begin); took > 4*shortly {
		t.Errorf("%s: it took %v, the Timeout is %v", what, took, shortly)
	}
}

func TestCommitWithoutReply(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		p := redistest.NewProxy(t, s.Server)
		o := patient
		o.Timeout = shortly
		create(t, s.process(t), "before")
		h := take(t, s.open(p.Pool(t, 2), s.locks.Pool(t, 2), o))
		once(t, s.Server, p, s.commit(), redistest.Hang)
		wantSoon(t, "Save", func() error { return h.Save(t.Context(), []byte("after")) })
		wantData(t, s, "after") // stored all the same: only the reply is missing
		eventually(t, "the lock is free", func() bool { return !s.locks.Exists(t, theLock) })
	})
}

func TestTakeWithoutReply(t *testing.T) {
	t.Parallel()
	besideRecord(t, func(t *testing.T, s *site) {
		p := redistest.NewProxy(t, s.Server)
		o := patient
		o.Timeout = shortly
		create(t, s.process(t), "data")
		st := s.open(p.Pool(t, 2), nil, o)
		onceFor(t, p, readsBoth, redistest.Hang)
		wantSoon(t, "Take", func() error { _, err := st.Take(t.Context(), theID, Terms{}); return err })
		// It had taken the lock.
		eventually(t, "the lock is free", func() bool { return !s.Exists(t, theLock) })
	})
}

// Nothing is known about an old session after a crash: it is not made up. The connection is
// dead then, and nobody notices until it is used.
func TestRestart(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		ctx := t.Context()
		st := s.open(s.Pool(t, 8), s.locks.Pool(t, 8), patient)
		create(t, st, "before")
		h := take(t, st)

		s.Stop(t)
		wantError(t, "Ping", st.Ping(ctx), ErrUnavailable)
		_, err := st.Take(ctx, newID, Terms{})
		wantError(t, "Take", err, ErrUnavailable)
		_, err = st.Load(ctx, theID, Terms{})
		wantError(t, "Load", err, ErrUnavailable)
		wantError(t, "Create", st.Create(ctx, newID, []byte("1"), Terms{}), ErrUnavailable)
		s.Restart(t)
		s.Restart(t)

		_, err = st.Load(ctx, theID, Terms{})
		wantError(t, "Load", err, ErrNotFound)
		wantError(t, "Save", h.Save(ctx, []byte("after")), ErrLost)
		_, err = st.Take(ctx, theID, Terms{})
		wantError(t, "Take", err, ErrNotFound)
		if keys := s.Keys(t); len(keys) != 0 {
			t.Errorf("there are keys %q", keys)
		}
		create(t, st, "new")
		save(t, take(t, st), "newer")
		wantData(t, s, "newer")
	})
}

// A server that hangs is met with the Timeout. What it was sent meanwhile it may
// do when it comes to itself, and still all is well then.
func TestPause(t *testing.T) {
	t.Parallel()
	eachFenceReal(t, func(t *testing.T, s *site) {
		ctx := t.Context()
		o := patient
		o.Timeout = shortly
		st := s.open(s.Pool(t, 8), s.locks.Pool(t, 8), o)
		learn(t, s.Server)
		create(t, s.process(t), "before")
		h := take(t, st)
		s.Pause(t)
		var all sync.WaitGroup
		for what, try := range map[string]func() error{
			"Save":   func() error { return h.Save(ctx, []byte("perhaps")) },
			"Load":   func() error { _, err := st.Load(ctx, theID, Terms{}); return err },
			"Take":   func() error { _, err := st.Take(ctx, newID, Terms{}); return err },
			"Create": func() error { return st.Create(ctx, "third", []byte("x"), Terms{}) },
			"Ping":   func() error { return st.Ping(ctx) },
		} {
			all.Go(func() { wantSoon(t, what, try) })
		}
		all.Wait()
		s.Resume(t)

		eventually(t, "the session is free", func() bool { return !s.locks.Exists(t, theLock) })
		save(t, take(t, s.process(t)), "after")
		wantData(t, s, "after")
	})
}

// A client that is gone does not keep Redis busy, but who gives a session back
// does so with a context of its own.
func TestCancelledContext(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		st := s.process(t)
		create(t, st, "1")
		gone := errors.New("the client went away")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(gone)
		_, err := st.Take(ctx, theID, Terms{})
		if err == nil {
			t.Error("Take gave a Hold to nobody")
		}
		wantFree(t, s)

		h := take(t, st)
		if err := h.Save(context.WithoutCancel(ctx), []byte("2")); err != nil {
			t.Error(err)
		}
		wantData(t, s, "2")
	})
}

// Touch writes nothing, but it tells when it could not put the time-out off.
func TestTouchWithoutRedis(t *testing.T) {
	t.Parallel()
	besideRecord(t, func(t *testing.T, s *site) {
		st := s.process(t)
		create(t, st, "1")
		h := take(t, st)
		s.Stop(t)
		wantError(t, "Touch", h.Touch(t.Context()), ErrUnavailable)
	})
}
