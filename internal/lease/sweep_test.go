package lease

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

// The reply to a Take is lost. Whether and when it was done nobody knows; however
// it was, the lock must be free again, long before its lease is over.
func TestSweepAfterLostReply(t *testing.T) {
	type landings []time.Duration // when the command, and repetitions of it, take effect
	for name, tt := range map[string]struct {
		landings landings
		err      error
	}{
		"done":                        {landings{0}, errNoReply},
		"done, says another Runner":   {landings{0}, errOther},
		"lands a little later":        {landings{time.Millisecond}, errNoReply},
		"lands later":                 {landings{s}, errNoReply},
		"lands later, another Runner": {landings{s}, errOther},
		"lands half a lease later":    {landings{time.Minute / 2}, errNoReply},
		"done, and lands again later": {landings{0, s}, errNoReply},
		"lands again and again":       {landings{0, s / 10, s}, errNoReply},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var g Group
				f := fake{take: func(_ context.Context, _ int, do func() (bool, error)) (bool, error) {
					for _, d := range tt.landings {
						if d == 0 {
							do()
						} else {
							time.AfterFunc(d, func() { do() })
						}
					}
					return false, tt.err
				}}
				_, err := g.Lock(t.Context(), "k", &f, Options{Lease: time.Minute})
				if !errors.Is(err, ErrUnavailable) {
					t.Fatal(err)
				}
				wantIdle(t, &g)
				if f.Holder("k") != "" {
					t.Error("the lock was not even free when Lock returned")
				}
				// Sweeps come at intervals that double, from 20 ms on.
				after(max(20*time.Millisecond, 2*slices.Max(tt.landings)), func() {
					if f.Holder("k") != "" {
						t.Error("the lock was left to nobody")
					}
				})
			})
		})
	}
}

func TestSweepEndsByItself(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		f := fake{take: func(context.Context, int, func() (bool, error)) (bool, error) { return false, errNoReply }}
		begin := time.Now()
		g.Lock(t.Context(), "k", &f, Options{Lease: 10 * s})
		after(time.Hour, func() {
			sweeps := f.Made("Release")
			if n := len(sweeps); n > 12 {
				t.Errorf("%d sweeps", n)
			}
			if last := sweeps[len(sweeps)-1].At.Sub(begin); last < 10*s || last > 20*s {
				t.Errorf("the last sweep came after %v, want one to two leases", last)
			}
			for _, c := range sweeps {
				if c.Token != f.Made("Take")[0].Token || c.D != 0 {
					t.Errorf("a sweep for something else: %+v", c)
				}
			}
		})
	})
}

// Redis is away for a while, with the token in it.
func TestSweepOutlastsAnOutage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		back := time.Now().Add(2 * s)
		f := fake{
			take: func(_ context.Context, _ int, do func() (bool, error)) (bool, error) { do(); return false, errNoReply },
			release: func(_ context.Context, _ int, do func() error) error {
				if time.Now().Before(back) {
					return errNoReply
				}
				return do()
			},
		}
		g.Lock(t.Context(), "k", &f, Options{})
		after(4*s, func() {
			if f.Holder("k") != "" {
				t.Error("the lock was left to nobody")
			}
		})
	})
}

// The caller has waited for Take already; the first sweep must not keep it much
// longer.
func TestSweepDoesNotKeepTheCaller(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		hang := func(ctx context.Context) error { <-ctx.Done(); return errNoReply }
		f := fake{
			take:    func(context.Context, int, func() (bool, error)) (bool, error) { return false, errNoReply },
			release: func(ctx context.Context, _ int, _ func() error) error { return hang(ctx) },
		}
		begin := time.Now()
		g.Lock(t.Context(), "k", &f, Options{Timeout: 4 * s})
		if waited := time.Since(begin); waited != s {
			t.Errorf("Lock returned %v after the failure, want a quarter of Timeout", waited)
		}
		time.Sleep(time.Hour) // let the other sweeps end
	})
}

// A refusal is an answer: the lock was not taken, and there is nothing to sweep.
func TestSweepNotAfterRefusal(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		f := fake{take: func(context.Context, int, func() (bool, error)) (bool, error) { return false, errRefused }}
		if _, err := g.Lock(t.Context(), "k", &f, Options{}); !errors.Is(err, ErrUnavailable) {
			t.Error(err)
		}
		after(time.Hour, func() {
			if n := len(f.Made("Release")); n != 0 {
				t.Errorf("%d sweeps", n)
			}
		})
	})
}
