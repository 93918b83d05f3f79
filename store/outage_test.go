package store

import (
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// wantTimeout checks that f, which meets a silent Redis, fails by the Timeout, in fake time exactly.
func wantTimeout(t *testing.T, what string, f func() error) {
	t.Helper()
	begun := time.Now()
	wantError(t, what, f(), ErrUnavailable)
	if took := time.Since(begun); took != patient.Timeout {
		t.Errorf("%s: it took %v, the Timeout is %v", what, took, patient.Timeout)
	}
}

// A commit whose reply never comes is unavailable, though it was done, and leaves no lock.
func TestCommitWithoutReply(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st, p := tapped(t, s, patient)
		create(t, process(t, s), "before")
		h := take(t, st)
		once(t, s, p, commitScript, redistest.Hang)
		wantTimeout(t, "Save", func() error { return h.Save(t.Context(), []byte("after")) })
		wantData(t, s, "after") // stored all the same: only the reply is missing
		eventually(t, "the lock is free", func() bool { return !s.Exists(t, theLock) })
	})
}

// P8: a server that hangs is met with the Timeout. What it was sent meanwhile it may
// do when it comes to itself, and still all is well then.
func TestPause(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, s *redistest.Server) {
		ctx, st := t.Context(), process(t, s)
		create(t, process(t, s), "before")
		h := take(t, st)
		s.Pause(t)
		begun := time.Now()
		var all []*ending
		for _, try := range []func() error{
			func() error { return h.Save(ctx, []byte("perhaps")) },
			func() error { _, err := st.Load(ctx, theID, Terms{}); return err },
			func() error { _, err := st.Take(ctx, newID, Terms{}); return err },
			func() error { return st.Create(ctx, "third", []byte("x"), Terms{}) },
			func() error { return st.Ping(ctx) },
		} {
			all = append(all, begin(try))
		}
		for i, e := range all {
			wantError(t, "a try", e.wait(), ErrUnavailable)
			if took := time.Since(begun); took != patient.Timeout {
				t.Errorf("try %d took %v, the Timeout is %v", i, took, patient.Timeout)
			}
		}
		s.Resume(t)
		eventually(t, "the session is free", func() bool { return !s.Exists(t, theLock) })
		save(t, take(t, process(t, s)), "after")
		wantData(t, s, "after")
	})
}

// P8: nothing is known about an old session after a crash: it is not made up. The connection is
// dead then, and nobody notices until it is used.
func TestRestart(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, s *redistest.Server) {
		ctx, st := t.Context(), process(t, s)
		create(t, st, "before")
		h, touched := take(t, st), ownHold(t, st, "another")

		s.Stop(t)
		wantError(t, "Ping", st.Ping(ctx), ErrUnavailable)
		_, err := st.Take(ctx, newID, Terms{})
		wantError(t, "Take", err, ErrUnavailable)
		_, err = st.Load(ctx, theID, Terms{})
		wantError(t, "Load", err, ErrUnavailable)
		wantError(t, "Create", st.Create(ctx, newID, []byte("1"), Terms{}), ErrUnavailable)
		wantError(t, "Touch", touched.Touch(ctx), ErrUnavailable)
		s.Restart(t)
		s.Restart(t)

		wantError(t, "Save", h.Save(ctx, []byte("after")), ErrLost)
		wantNotFound(t, s, st, Terms{})
		create(t, st, "new")
		save(t, take(t, st), "newer")
		wantData(t, s, "newer")
	})
}
