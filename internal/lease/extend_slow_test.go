package lease

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// The lease ends while Extend waits for Redis. The holder is told then, and not
// when the answer comes; and an answer that comes too late does not count.
func TestExtendTakesTooLong(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		var f fake
		f.extend = func(_ context.Context, _ int, do func() error) error {
			time.Sleep(time.Minute)
			f.Put("k", f.Made("Take")[0].Token, s) // so that Redis says yes
			return do()
		}
		l := lock(t, &g, &f, Options{Lease: 9 * s})
		extended := make(chan error, 1)
		go func() { extended <- l.Extend(t.Context(), time.Hour) }()
		after(9*s, func() {
			if !isLost(l) {
				t.Error("the holder was not told when its lease was over")
			}
			wantIdle(t, &g)
		})
		if err := <-extended; !errors.Is(err, ErrExpired) {
			t.Errorf("Extend: %v", err)
		}
		if f.Holder("k") != "" {
			t.Error("the lock was extended for nobody")
		}
	})
}

// Redis would not be waited for longer than the lease lasts.
func TestExtendAsksWithinTheLease(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
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
		var g Group
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
		synctest.Wait()
		l.mu.Lock()
		l.end = time.Now().Add(5 * s) // so that the watchdog has reason to extend it,
		l.mu.Unlock()
		l.renew() // and this is the moment
		after(3*s, func() {
			if n := len(f.Made("Extend")); n != 3 {
				t.Errorf("%d extensions in 3 s", n)
			}
			if here, there := l.end, time.Now().Add(f.Left("k")); !here.Add(s).Equal(there) {
				t.Errorf("the lease ends at %v here, and at %v in Redis, which was asked a second before", here, there)
			}
		})
	})
}

// An extension that shortens the lease was done, but its answer is lost. The holder
// must reckon with it: Redis may end the lease that soon.
func TestExtendByLessWithoutAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		f := fake{extend: func(_ context.Context, n int, do func() error) error {
			if n > 1 {
				return errRefused
			}
			_ = do() // it succeeds, and nobody gets to know
			return errNoReply
		}}
		l := lock(t, &g, &f, Options{Lease: 9 * s})
		if err := l.Extend(t.Context(), s); !errors.Is(err, ErrUnavailable) {
			t.Errorf("Extend: %v", err)
		}
		if v := l.Validity(); v > s {
			t.Errorf("the holder relies on %v", v)
		}
		after(s, func() {
			if f.Holder("k") != "" || !isLost(l) {
				t.Errorf("the lock is %q, and the holder knows of its loss: %v", f.Holder("k"), isLost(l))
			}
		})
		wantIdle(t, &g)
	})
}

// One that Redis refused changes nothing.
func TestExtendByLessRefused(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		f := fake{extend: func(context.Context, int, func() error) error { return errRefused }}
		l := lock(t, &g, &f, Options{Lease: 9 * s})
		if err := l.Extend(t.Context(), s); !errors.Is(err, ErrUnavailable) {
			t.Errorf("Extend: %v", err)
		}
		if v := l.Validity(); v != 9*s {
			t.Errorf("the holder relies on %v", v)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
