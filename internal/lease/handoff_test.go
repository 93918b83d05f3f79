package lease

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// hand gives the lock to a caller that was taken out of line, as Give and HandOver do.
func hand(l *Lease, w *Lease, token string, now, end time.Time) {
	l.hand(w, Next{Token: token, sent: now}, false, end)
}

// The lock is passed on in the order they came, by one exchange each, and is never
// free. Each has a token of its own.
func TestHandoff(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c, l := newCrowd(t, 5)
		seen := map[string]bool{l.Token(): true}
		for i := range 5 {
			mustUnlock(t, l)
			l = c.holds(i)
			if c.f.Holder("k") != l.Token() || seen[l.Token()] {
				t.Errorf("number %d has the token %q, and Redis %q", i, l.Token(), c.f.Holder("k"))
			}
			seen[l.Token()] = true
		}
		mustUnlock(t, l)
		if takes, passes, releases := len(c.f.Made("Take")), len(c.f.Made("Pass")), len(c.f.Made("Release")); takes != 1 || passes != 5 || releases != 1 {
			t.Errorf("%d takes, %d passes, %d releases", takes, passes, releases)
		}
		c.wantRest()
	})
}

// While another process waits, the lock is passed on for a moment only, whether they
// hold it for no time or for long. Alone it is longer.
func TestHandoffEndsWithTheTurn(t *testing.T) {
	for name, tt := range map[string]struct {
		hold   time.Duration
		others bool
		served int // and then it is another's turn
	}{
		"a moment":        {0, true, maxHandoffs + 1},
		"a while":         {maxTime / 4, true, 4},
		"long":            {s, true, 1},
		"a moment, alone": {0, false, 100},
		"a while, alone":  {maxTime, false, int(maxTimeAlone / maxTime)},
		"long, alone":     {2 * s, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c, l := newCrowd(t, 100)
				var other <-chan result
				if tt.others {
					other = contend(t, t.Context(), c.f.site.process(), slow)
					// That took time, so the turn begins anew.
					l.quota = quota{began: time.Now(), others: true}
				}
				for i := range tt.served {
					if time.Sleep(tt.hold); i == tt.served-1 {
						break
					}
					mustUnlock(t, l)
					l = c.holds(i)
				}
				passes := len(c.f.Made("Pass"))
				if mustUnlock(t, l); len(c.f.Made("Pass")) > passes && tt.served < 100 {
					t.Error("it is passed on once more")
				}
				if tt.others {
					mustWin(t, other)
				}
				for i := tt.served - 1; i < 100; i++ { // and all get it in the end
					mustWin(t, c.got[i])
				}
				c.wantRest()
			})
		})
	}
}

// Whoever was to have the lock has gone while Redis was told. The next one has it, or
// else it is free.
func TestHandoffToWhoHasGone(t *testing.T) {
	for name, others := range map[string]int{"the next one has it": 1, "nobody waits": 0} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c, l := newCrowd(t, 0)
				ctx, cancel := context.WithCancel(t.Context())
				c.join(ctx)
				for range others {
					c.join(t.Context())
				}
				c.f.pass = func(_ int, do func() (bool, error)) (bool, error) {
					cancel()
					synctest.Wait()
					return do()
				}
				mustUnlock(t, l)
				if others > 0 {
					mustUnlock(t, c.holds(1))
				}
				if holder := c.f.Holder("k"); holder != "" {
					t.Errorf("%q has the lock", holder)
				}
				c.wantRest()
			})
		})
	}
}

// The context of whoever is to have the lock ends just as it comes: it is about to be
// told, so it cannot leave the line any more. The lock goes on to the next one.
func TestHandoffToWhoIsGoing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c, l := newCrowd(t, 0)
		ctx, cancel := context.WithCancel(t.Context())
		c.join(ctx)
		c.join(t.Context())
		w := l.group.next("k") // what HandOver and pass do, step by step
		l.Stop(false)
		cancel()
		synctest.Wait()
		now := time.Now()
		c.f.Put("k", "passed", s)
		hand(l, w, "passed", now, now.Add(s))
		if r := <-c.got[0]; !errors.Is(r.err, context.Canceled) {
			t.Errorf("who had gone got %v", r.err)
		}
		mustUnlock(t, c.holds(1))
		c.wantRest()
	})
}

// A process slept for longer than the lease when it had passed the lock on. Nobody is
// made to believe in it: whoever was to have it takes the lock anew.
func TestHandoffTakesTooLong(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c, l := newCrowd(t, 2)
		w := l.group.next("k")
		l.Stop(false)
		now := time.Now()
		c.f.Put("k", "", 0)
		hand(l, w, "passed", now.Add(-s), now)
		mustUnlock(t, c.holds(1)) // holds checks that it is not over
		mustUnlock(t, c.holds(0))
		c.wantRest()
	})
}

// The lock is lost while it is handed over. Whoever was to have it waits again, before
// those who came after it.
func TestHandoffOfALostLock(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c, l := newCrowd(t, 0)
		for range 3 {
			time.Sleep(time.Millisecond)
			c.join(t.Context())
		}
		w := l.group.next("k")
		l.Stop(false)
		now := time.Now()
		c.f.Put("k", "another's", 10*s)
		hand(l, w, "passed", now, now.Add(s))
		w.Lose(ErrLost) // before it can have noticed
		time.Sleep(20 * s)
		mustUnlock(t, c.holds(1)) // whose turn it was then
		mustUnlock(t, c.holds(0))
		mustUnlock(t, c.holds(2))
		c.wantRest()
	})
}

// Who waits again is not turned away because others have come meanwhile.
func TestHandoffOfALostLockWhereManyWait(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c, l := newCrowd(t, 0)
		for range 2 {
			time.Sleep(time.Millisecond)
			c.joinAs(t.Context(), Options{Wait: time.Minute, MaxWaiters: 2})
		}
		w := l.group.next("k")
		l.Stop(false)
		c.joinAs(t.Context(), Options{Wait: time.Minute, MaxWaiters: 2})
		now := time.Now()
		c.f.Put("k", "another's", 10*s)
		hand(l, w, "passed", now, now.Add(s))
		w.Lose(ErrLost)
		c.joinAs(t.Context(), Options{Wait: time.Minute, MaxWaiters: 2})
		time.Sleep(20 * s)
		mustUnlock(t, c.holds(1))
		mustUnlock(t, c.holds(0))
		mustUnlock(t, c.holds(2))
		c.wantRest()
	})
}

// Nor does it wait for longer than it may, where Redis is silent.
func TestHandoffOfALostLockAtTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const wait, timeout = 5 * s, 2 * s
		f, g := &fake{}, &Group{}
		l := lock(t, g, f, Options{})
		took := make(chan time.Duration, 1)
		go func() {
			began := time.Now()
			if _, err := g.Lock(t.Context(), "k", f, Options{Wait: wait, Timeout: timeout}); err == nil {
				t.Error("it got the lock")
			}
			took <- time.Since(began)
		}()
		synctest.Wait()
		time.Sleep(wait - time.Millisecond)
		silent := func() error { time.Sleep(timeout); return errSilent }
		f.release = func(context.Context, int, func() error) error { return silent() }
		f.take = func(context.Context, int, func() (bool, error)) (bool, error) { return false, silent() }
		w := l.group.next("k")
		l.Stop(false)
		now := time.Now()
		hand(l, w, "passed", now, now.Add(s))
		w.Lose(ErrLost)
		if d := <-took; d > wait+timeout+timeout/4 {
			t.Errorf("it took %v", d)
		}
		time.Sleep(time.Minute)
	})
}
