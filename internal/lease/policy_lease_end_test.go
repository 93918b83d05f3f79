package lease

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Somebody holds the lock for longer than the caller may wait. With LeaseEnd it is
// told so at once, wherever the holder is, and by whichever of its limits.
func TestPolicyLeaseEndGivesUp(t *testing.T) {
	for name, tt := range map[string]struct {
		here  bool // in this process, or in another
		lease time.Duration
		limit time.Duration // by a deadline, where it is not Options.Wait
	}{
		"another process":           {false, 10*s + 1, 0},
		"another, by its deadline":  {false, 5 * s, 4 * s},
		"another, without end":      {false, 1 << 62, 0},
		"this process":              {true, 10*s + time.Millisecond, 0},
		"this one, by its deadline": {true, 5 * s, 4 * s},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var g Group
				var f fake
				if tt.here {
					l := lock(t, &g, &f, Options{Lease: tt.lease})
					defer l.Unlock(t.Context())
				} else {
					f.Put("k", newToken("", time.Now()), tt.lease)
				}
				tries := len(f.Made("Take"))
				ctx := t.Context()
				if tt.limit > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.limit)
					defer cancel()
				}
				begin := time.Now()
				_, err := g.Lock(ctx, "k", &f, Options{Wait: 10 * s, Policy: LeaseEnd, Held: held})
				wantTook(t, "Lock", begin, 0)
				if _, named := errors.AsType[heldError](err); !named || !errors.Is(err, ErrTimeout) {
					t.Errorf("error %v", err)
				}
				if n := len(f.Made("Take")) - tries; tt.here && n != 0 || n > 1 {
					t.Errorf("%d tries", n)
				}
			})
		})
	}
}

// Those in line give up at once, too, where the one before them waits for a holder
// elsewhere that is too long for them.
func TestPolicyLeaseEndBehindAnother(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		var f fake
		f.Put("k", newToken("", time.Now()), time.Minute)
		go g.Lock(t.Context(), "k", &f, Options{Wait: time.Hour, Policy: LeaseEnd})
		synctest.Wait()
		begin := time.Now()
		_, err := g.Lock(t.Context(), "k", &f, Options{Wait: time.Minute - 1, Policy: LeaseEnd, Held: held})
		wantTook(t, "Lock", begin, 0)
		if _, named := errors.AsType[heldError](err); !named {
			t.Errorf("error %v", err)
		}
		if n := len(f.Made("Take")); n != 1 {
			t.Errorf("%d tries", n)
		}
		time.Sleep(2 * time.Minute)
	})
}

// Where the lease ends in time, the wait is one sleep until then: two tries, rather
// than one every few milliseconds.
func TestPolicyLeaseEndSleeps(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		var f fake
		f.Put("k", "another", time.Hour)
		begin := time.Now()
		l := lock(t, &g, &f, Options{Wait: 2 * time.Hour, Policy: LeaseEnd})
		if late := time.Since(begin) - time.Hour; late < 0 || late > 20*time.Millisecond {
			t.Errorf("the lock was taken %v after it was free", late)
		}
		if n := len(f.Made("Take")); n != 2 {
			t.Errorf("%d tries", n)
		}
		mustUnlock(t, l)
	})
}

// The holder extends its lease while others sleep. They look again when it would
// have ended, and give up as soon as they see that they wait in vain.
func TestPolicyLeaseEndMoves(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		var f fake
		f.Put("k", "another", 4*s)
		time.AfterFunc(3*s, func() { f.Put("k", "another", 4*s) })
		time.AfterFunc(6*s, func() { f.Put("k", "another", 4*s) })
		begin := time.Now()
		_, err := g.Lock(t.Context(), "k", &f, Options{Wait: 8 * s, Policy: LeaseEnd})
		if took := time.Since(begin).Truncate(s); took != 7*s || !errors.Is(err, ErrTimeout) {
			t.Errorf("after %v: %v", took, err)
		}
		if n := len(f.Made("Take")); n != 3 {
			t.Errorf("%d tries", n)
		}
	})
}

// A secretive fake does not tell how long a lease lasts.
type secretive struct{ *fake }

func (f secretive) Take(ctx context.Context, key, token, _ string, lease time.Duration) (Attempt, error) {
	found, err := f.fake.Take(ctx, key, token, "", lease)
	found.Left = 0
	return found, err
}

// Where Redis may not tell how long the lease lasts, the only way is to look.
func TestPolicyLeaseEndUnknown(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		f := secretive{&fake{}}
		f.Put("k", "another", s)
		begin := time.Now()
		if _, err := g.Lock(t.Context(), "k", f, Options{Policy: LeaseEnd}); err != nil {
			t.Fatal(err)
		}
		if late := time.Since(begin) - s; late < 0 || late > 20*time.Millisecond {
			t.Errorf("the lock was taken %v after it was free", late)
		}
		if n := len(f.Made("Take")); n < 50 {
			t.Errorf("%d tries: it did not poll", n)
		}
	})
}
