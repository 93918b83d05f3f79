package lease

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"
)

// Take succeeds, but whoever asked has gone while it was on its way.
func TestTakenForNobodyIsGivenBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("the client has gone")
		f := fake{take: func(_ context.Context, _ int, do func() (bool, error)) (bool, error) {
			cancel(gone)
			return do()
		}}
		if _, err := g.Lock(ctx, "k", &f, Options{}); !errors.Is(err, gone) {
			t.Error(err)
		}
		if f.Holder("k") != "" {
			t.Error("the lock was left to nobody")
		}
		wantIdle(t, &g)
		after(time.Hour, func() { // its reply had come, so one Release is enough
			if n := len(f.Made("Release")); n != 1 {
				t.Errorf("%d releases", n)
			}
		})
	})
}

// The answer takes as long as the lease: the lock may be another's already.
func TestTakenTooSlowlyIsNotGivenOut(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		f := fake{take: func(_ context.Context, _ int, do func() (bool, error)) (bool, error) {
			time.Sleep(s)
			return do()
		}}
		if _, err := g.Lock(t.Context(), "k", &f, Options{Lease: s}); !errors.Is(err, ErrUnavailable) {
			t.Errorf("error %v, want that Redis is too slow", err)
		}
		if f.Holder("k") != "" {
			t.Error("the lock was left to nobody")
		}
		wantIdle(t, &g)
	})
}

// The caller's context ended, and Redis is away: the error says both.
func TestContextEndsWhileRedisIsAway(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("the client has gone")
		f := fake{take: func(context.Context, int, func() (bool, error)) (bool, error) {
			cancel(gone)
			return false, errRefused
		}}
		_, err := g.Lock(ctx, "k", &f, Options{})
		if !errors.Is(err, gone) || !errors.Is(err, ErrUnavailable) {
			t.Error(err)
		}
	})
}

// An algorithm that panics, or a test that ends with FailNow in it, must not keep
// the next one in line waiting.
func TestAlgorithmDoesNotReturn(t *testing.T) {
	for name, leave := range map[string]func(){
		"panic":  func() { panic("a bug") },
		"Goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var g Group
				var f fake
				once := true
				fail := func() {
					if once {
						once = false
						leave()
					}
				}
				f.take = func(_ context.Context, _ int, do func() (bool, error)) (bool, error) { fail(); return do() }
				f.extend = func(_ context.Context, _ int, do func() error) error { fail(); return do() }
				f.release = f.extend
				failing := func(f func()) {
					once = true
					done := make(chan struct{})
					go func() {
						defer close(done)
						defer func() { _ = recover() }()
						f()
						t.Error("it returned")
					}()
					<-done
				}
				failing(func() { g.Lock(t.Context(), "k", &f, Options{}) })
				wantIdle(t, &g)

				l := lock(t, &g, &f, Options{})
				failing(func() { l.Extend(t.Context(), s) })
				if err := l.Extend(t.Context(), s); err != nil {
					t.Errorf("the next Extend: %v", err)
				}
				failing(func() { l.Unlock(t.Context()) })
				wantIdle(t, &g)
			})
		})
	}
}
