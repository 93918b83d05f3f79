package lease

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestExtendBeyondMaxHold(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		var f fake
		l := lock(t, &g, &f, Options{Lease: 10 * s, MaxHold: 20 * s})
		if err := l.Extend(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		after(time.Hour-1, func() {
			if isLost(l) || f.Holder("k") == "" {
				t.Error("lost before the hour was over")
			}
		})
		after(1, func() {
			if !isLost(l) {
				t.Error("not lost when the hour was over")
			}
		})
	})
}

// A shorter time does not last: the watchdog makes a whole lease of it again, until
// MaxHold, or what was asked for beyond that.
func TestExtendByLess(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		var f fake
		l := lock(t, &g, &f, Options{Lease: 9 * s, MaxHold: 20 * s})
		for _, d := range []time.Duration{time.Minute, s} {
			if err := l.Extend(t.Context(), d); err != nil {
				t.Fatal(err)
			}
		}
		after(time.Minute-1, func() {
			if isLost(l) || f.Holder("k") == "" {
				t.Error("the watchdog did not go on")
			}
		})
		after(1, func() {
			if !isLost(l) {
				t.Error("not lost when the minute was over")
			}
		})
	})
}

func TestExtendByNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		var f fake
		l := lock(t, &g, &f, Options{})
		for _, d := range []time.Duration{-s, 0, time.Millisecond - 1} {
			if err := l.Extend(t.Context(), d); err == nil {
				t.Errorf("Extend by %v: no error", d)
			}
		}
		if n := len(f.Made("Extend")); n != 0 {
			t.Errorf("Redis was asked %d times", n)
		}
	})
}

func TestExtendCountsInWholeMillis(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		var f fake
		l := lock(t, &g, &f, Options{})
		if err := l.Extend(t.Context(), s+1); err != nil {
			t.Error(err)
		}
		if d := f.Made("Extend")[0].D; d != s+time.Millisecond {
			t.Errorf("Redis was asked for %v", d)
		}
	})
}

func TestExtendAfterUnlock(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		var f fake
		l := lock(t, &g, &f, Options{})
		l.Unlock(t.Context())
		if err := l.Extend(t.Context(), s); !errors.Is(err, ErrExpired) {
			t.Error(err)
		}
		if n := len(f.Made("Extend")); n != 0 {
			t.Errorf("Redis was asked %d times", n)
		}
	})
}

// A loss is final. Extend only tells whether another has the lock, and does not
// take it back behind the back of those who were told.
func TestExtendAfterLoss(t *testing.T) {
	for name, tt := range map[string]struct {
		holder string // of the key, "me" for the lease itself
		want   error
	}{
		"nobody took it":           {"", ErrExpired},
		"another did":              {"another", ErrLost},
		"its token is still there": {"me", ErrExpired},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var g Group
				var f fake
				l := lock(t, &g, &f, Options{Lease: s, MaxHold: s})
				after(s, func() {
					if tt.holder == "me" {
						f.Put("k", l.token, time.Hour)
					} else if tt.holder != "" {
						f.Put("k", tt.holder, time.Hour)
					}
				})
				if err := l.Extend(t.Context(), time.Hour); !errors.Is(err, tt.want) {
					t.Errorf("error %v, want %v", err, tt.want)
				}
				if holder := f.Holder("k"); holder == l.token {
					t.Error("it was extended")
				}
				if err := l.Unlock(t.Context()); !errors.Is(err, tt.want) {
					t.Errorf("Unlock: %v, want %v", err, tt.want)
				}
			})
		})
	}
}

// Extend finds out that the lock is gone, so everybody is told.
func TestExtendFindsLoss(t *testing.T) {
	for _, want := range []error{ErrLost, ErrExpired} {
		t.Run(want.Error(), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var g Group
				f := fake{extend: func(context.Context, int, func() error) error { return want }}
				l := lock(t, &g, &f, Options{})
				if err := l.Extend(t.Context(), s); !errors.Is(err, want) {
					t.Error(err)
				}
				if !isLost(l) {
					t.Error("the holder was not told")
				}
				wantIdle(t, &g)
			})
		})
	}
}

// Redis does not answer, which is no loss yet: the watchdog has the rest of the
// lease to get through.
func TestExtendWithoutRedis(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		f := fake{extend: func(_ context.Context, n int, do func() error) error {
			if n == 1 {
				return errNoReply
			}
			return do()
		}}
		l := lock(t, &g, &f, Options{Lease: 9 * s})
		if err := l.Extend(t.Context(), time.Hour); !errors.Is(err, ErrUnavailable) {
			t.Error(err)
		}
		after(50*s, func() {
			if isLost(l) || f.Holder("k") == "" {
				t.Error("lost")
			}
		})
	})
}
