package locker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestExtendBeyondMaxHold(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Guard
		var f fake
		l := lock(t, &g, &f, Options{Lease: 10 * s, MaxHold: 20 * s})
		if err := l.Extend(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		after(time.Hour-1, func() {
			if isLost(l) || f.holder("k") == "" {
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

// A shorter time does not last: the watchdog makes a whole lease of it again.
func TestExtendByLess(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Guard
		var f fake
		l := lock(t, &g, &f, Options{Lease: 9 * s})
		if err := l.Extend(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		after(30*s, func() {
			if isLost(l) || f.holder("k") == "" {
				t.Error("the watchdog did not go on")
			}
		})
	})
}

func TestExtendByNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Guard
		var f fake
		l := lock(t, &g, &f, Options{})
		for _, d := range []time.Duration{-s, 0, time.Millisecond - 1} {
			if err := l.Extend(t.Context(), d); err == nil {
				t.Errorf("Extend by %v: no error", d)
			}
		}
		if n := len(f.made("Extend")); n != 0 {
			t.Errorf("Redis was asked %d times", n)
		}
	})
}

func TestExtendAfterUnlock(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Guard
		var f fake
		l := lock(t, &g, &f, Options{})
		l.Unlock(t.Context())
		if err := l.Extend(t.Context(), s); !errors.Is(err, ErrExpired) {
			t.Error(err)
		}
		if n := len(f.made("Extend")); n != 0 {
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
				var g Guard
				var f fake
				l := lock(t, &g, &f, Options{Lease: s, MaxHold: s})
				after(s, func() {
					if tt.holder == "me" {
						f.put("k", l.token, time.Hour)
					} else if tt.holder != "" {
						f.put("k", tt.holder, time.Hour)
					}
				})
				if err := l.Extend(t.Context(), time.Hour); !errors.Is(err, tt.want) {
					t.Errorf("error %v, want %v", err, tt.want)
				}
				if holder := f.holder("k"); holder == l.token {
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
				var g Guard
				f := fake{extend: func(context.Context, int, func() error) error { return want }}
				l := lock(t, &g, &f, Options{})
				if err := l.Extend(t.Context(), s); !errors.Is(err, want) {
					t.Error(err)
				}
				if !isLost(l) {
					t.Error("the holder was not told")
				}
				wantIdle(t, &g.line)
			})
		})
	}
}

// Redis does not answer, which is no loss yet: the watchdog has the rest of the
// lease to get through.
func TestExtendWithoutRedis(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Guard
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
			if isLost(l) || f.holder("k") == "" {
				t.Error("lost")
			}
		})
	})
}

// The lease ends while Extend waits for Redis. The holder is told then, and not
// when the answer comes; and an answer that comes too late does not count.
func TestExtendTakesTooLong(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Guard
		var f fake
		f.extend = func(_ context.Context, _ int, do func() error) error {
			time.Sleep(time.Minute)
			f.put("k", f.made("Take")[0].token, s) // so that Redis says yes
			return do()
		}
		l := lock(t, &g, &f, Options{Lease: 9 * s})
		extended := make(chan error, 1)
		go func() { extended <- l.Extend(t.Context(), time.Hour) }()
		after(9*s, func() {
			if !isLost(l) {
				t.Error("the holder was not told when its lease was over")
			}
			wantIdle(t, &g.line)
		})
		if err := <-extended; !errors.Is(err, ErrExpired) {
			t.Errorf("Extend: %v", err)
		}
		if f.holder("k") != "" {
			t.Error("the lock was extended for nobody")
		}
	})
}

// Redis would not be waited for longer than the lease lasts.
func TestExtendAsksWithinTheLease(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Guard
		f := fake{extend: func(ctx context.Context, _ int, _ func() error) error {
			<-ctx.Done()
			return errNoReply
		}}
		l := lock(t, &g, &f, Options{Lease: 9 * s})
		begin := time.Now()
		if err := l.Extend(context.Background(), s); !errors.Is(err, ErrUnavailable) {
			t.Error(err)
		}
		if waited := time.Since(begin); waited != 9*s {
			t.Errorf("it took %v", waited)
		}
		synctest.Wait()
		if !isLost(l) {
			t.Error("the lease is over, and the holder was not told")
		}
	})
}

// Extensions do not overtake one another, so the same one is the last here and in
// Redis.
func TestExtendOneAfterAnother(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Guard
		running := 0
		f := fake{extend: func(_ context.Context, _ int, do func() error) error {
			if running++; running > 1 {
				t.Error("two extensions at once")
			}
			time.Sleep(s)
			running--
			return do()
		}}
		l := lock(t, &g, &f, Options{})
		for d := range 3 {
			go func() {
				if err := l.Extend(t.Context(), time.Duration(d+1)*time.Hour); err != nil {
					t.Error(err)
				}
			}()
		}
		after(3*s, func() {
			if n := len(f.made("Extend")); n != 3 {
				t.Errorf("%d extensions in 3 s", n)
			}
			if here, there := l.end, f.locks["k"].end; !here.Add(s).Equal(there) {
				t.Errorf("the lease ends at %v here, and at %v in Redis, which was asked a second before", here, there)
			}
		})
	})
}
