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

// P8: a server that hangs is met with the Timeout. What it was sent meanwhile it may
// do when it comes to itself, and still all is well then.
func TestPause(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
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
