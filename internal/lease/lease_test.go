package lease

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestUnlock(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		var f fake
		l := lock(t, &g, &f, Options{})
		if f.Holder("k") == "" {
			t.Error("the lock is not taken")
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		if f.Holder("k") != "" {
			t.Error("the lock is not free")
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Errorf("second Unlock: %v", err)
		}
		if n := len(f.Made("Release")); n != 1 {
			t.Errorf("%d releases", n)
		}
		wantIdle(t, &g)
		after(time.Hour, func() {
			if isLost(l) {
				t.Error("what was given back is called lost")
			}
			if n := len(f.Made("Extend")); n != 0 {
				t.Errorf("the watchdog went on: %d extensions", n)
			}
		})
	})
}

// A context that has ended is no reason to leave a lock shut for a lease: that is
// how a deferred Unlock often comes.
func TestUnlockWithEndedContext(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		f := fake{release: func(ctx context.Context, _ int, do func() error) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return do()
		}}
		ctx, cancel := context.WithCancel(t.Context())
		l := lock(t, &g, &f, Options{})
		cancel()
		if err := l.Unlock(ctx); err != nil || f.Holder("k") != "" {
			t.Errorf("error %v, holder %q", err, f.Holder("k"))
		}
	})
}

// Whoever unlocks too late is told whether another has had the lock meanwhile.
func TestUnlockTooLate(t *testing.T) {
	for name, tt := range map[string]struct {
		taken bool
		want  error
	}{
		"nobody took it": {false, ErrExpired},
		"another did":    {true, ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var g Group
				var f fake
				l := lock(t, &g, &f, Options{Lease: s, MaxHold: s})
				after(s, func() {
					if tt.taken {
						f.Put("k", "another", time.Hour)
					}
				})
				if err := l.Unlock(t.Context()); !errors.Is(err, tt.want) {
					t.Errorf("error %v, want %v", err, tt.want)
				}
				if tt.taken && f.Holder("k") != "another" {
					t.Error("another's lock was deleted")
				}
				if err := l.Unlock(t.Context()); err != nil {
					t.Errorf("second Unlock: %v", err)
				}
				wantIdle(t, &g)
			})
		})
	}
}

// The holder was told that the lock is lost, so it must not hear that all was
// well, even if Redis still has the token.
func TestUnlockAfterFalseAlarm(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		f := fake{extend: func(context.Context, int, func() error) error { return ErrExpired }}
		l := lock(t, &g, &f, Options{Lease: 9 * s})
		after(3*s, func() {
			if err := l.Unlock(t.Context()); !errors.Is(err, ErrExpired) {
				t.Error(err)
			}
			if f.Holder("k") != "" {
				t.Error("the lock is not free")
			}
		})
	})
}

// The turn goes on after the release, so the next one's first try succeeds.
func TestUnlockHandsOver(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		f := fake{release: func(_ context.Context, _ int, do func() error) error {
			time.Sleep(s)
			return do()
		}}
		l := lock(t, &g, &f, Options{})
		go g.Lock(t.Context(), "k", &f, Options{})
		synctest.Wait()
		l.Unlock(t.Context())
		synctest.Wait()
		if n := len(f.Made("Take")); n != 2 || f.Holder("k") == "" {
			t.Errorf("%d tries for two locks", n)
		}
	})
}

// Redis is away: the lock stays shut for its lease, but the next one's turn comes.
func TestUnlockWithoutRedis(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		f := fake{release: func(context.Context, int, func() error) error { return errNoReply }}
		l := lock(t, &g, &f, Options{Lease: s})
		if err := l.Unlock(t.Context()); !errors.Is(err, ErrUnavailable) {
			t.Error(err)
		}
		wantIdle(t, &g)
		lock(t, &g, &f, Options{Lease: s})
	})
}

func TestUnlockAfter(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		var f fake
		l := lock(t, &g, &f, Options{})
		if err := l.UnlockAfter(t.Context(), -1); err == nil || f.Holder("k") == "" {
			t.Errorf("a negative delay: %v", err)
		}
		if err := l.UnlockAfter(t.Context(), time.Minute); err != nil {
			t.Error(err)
		}
		wantIdle(t, &g)
		if err := l.Extend(t.Context(), time.Hour); !errors.Is(err, ErrExpired) {
			t.Errorf("Extend during the cool-down: %v", err)
		}
		after(time.Minute-1, func() {
			if f.Holder("k") == "" {
				t.Error("the cool-down ended early")
			}
		})
		after(1, func() {
			if f.Holder("k") != "" {
				t.Error("the cool-down did not end")
			}
		})
	})
}

// To Redis a delay of 0 means at once, so one of less than it counts in must not
// become 0.
func TestUnlockAfterAMoment(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		var f fake
		lock(t, &g, &f, Options{}).UnlockAfter(t.Context(), 1)
		if d := f.Made("Release")[0].D; d != time.Millisecond {
			t.Errorf("Redis was told a delay of %v", d)
		}
	})
}

// An extension is on its way when the holder sets a cool-down. Were the two to
// meet, the extension might be the last, and the cool-down be over with the lease.
func TestUnlockAfterWaitsForExtension(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		f := fake{extend: func(_ context.Context, _ int, do func() error) error {
			time.Sleep(s)
			return do()
		}}
		l := lock(t, &g, &f, Options{Lease: 9 * s})
		time.Sleep(3*s + s/2) // the watchdog's extension is half-way
		if err := l.UnlockAfter(t.Context(), time.Hour); err != nil {
			t.Error(err)
		}
		after(time.Minute, func() {
			if f.Holder("k") == "" {
				t.Error("the cool-down was cut short")
			}
		})
	})
}

// Any number of goroutines may give a lock back at once. It is given back once, and the next caller
// has it.
func TestUnlockByMany(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var f fake
		var g Group
		l := lock(t, &g, &f, Options{})
		next := make(chan *Lease)
		go func() { next <- lock(t, &g, &f, Options{}) }()
		synctest.Wait()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if err := l.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		mustUnlock(t, <-next)
		if n := len(f.Made("Release")); n != 2 {
			t.Errorf("released %d times, want once for each", n)
		}
	})
}
