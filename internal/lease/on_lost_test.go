package lease

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// What a holder wants to be called when its lock is lost may do with the lease what it
// likes, however the loss is noticed. It is called once.
func TestOnLostMayUseTheLease(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, f *fake, l *Lease){
		"a renewal finds another": func(_ *testing.T, f *fake, _ *Lease) { f.Put("k", "another", DefaultLease) },
		"MaxHold is over": func(_ *testing.T, _ *fake, l *Lease) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.limit = l.end
		},
		"an extension finds another": func(t *testing.T, f *fake, l *Lease) {
			f.Put("k", "another", DefaultLease)
			if err := l.Extend(t.Context(), s); !errors.Is(err, ErrLost) {
				t.Errorf("Extend: %v", err)
			}
		},
		"its owner knows it": func(_ *testing.T, _ *fake, l *Lease) { l.Lose(ErrLost) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var g Group
				var f fake
				l := lock(t, &g, &f, Options{})
				calls := make(chan error, 4)
				use := func(cause error) {
					if l.Validity() != 0 || !isLost(l) {
						t.Error("the lease is not over")
					}
					_ = l.Extend(context.Background(), s)
					_ = l.Unlock(context.Background())
					calls <- cause
				}
				l.OnLost(use)
				l.OnLost(use)
				lose(t, &f, l)
				time.Sleep(DefaultLease)
				synctest.Wait()
				if len(calls) != 2 {
					t.Fatalf("called %d times, want once for each OnLost", len(calls))
				}
				for range 2 {
					if cause := <-calls; !errors.Is(cause, ErrLost) {
						t.Errorf("the cause is %v", cause)
					}
				}
				wantIdle(t, &g)
			})
		})
	}
}

// A lease that is lost already says so at once.
func TestOnLostOfALostLease(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		l := lock(t, &g, &fake{}, Options{})
		l.Lose(ErrLost)
		ctx, cancel := context.WithCancelCause(t.Context())
		if l.OnLost(cancel); !errors.Is(context.Cause(ctx), ErrLost) {
			t.Errorf("the cause is %v", context.Cause(ctx))
		}
	})
}
