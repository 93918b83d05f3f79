package lease

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// The answer to a pass is lost. Nobody has the lock then: neither may two hold it, nor
// is it shut for a whole lease.
func TestHandoffInDoubt(t *testing.T) {
	for name, fail := range map[string]func(do func() (bool, error)) error{
		"done":         func(do func() (bool, error)) error { do(); return errNoReply },
		"comes later":  func(do func() (bool, error)) error { time.AfterFunc(s, func() { do() }); return errNoReply },
		"comes soon":   func(do func() (bool, error)) error { time.AfterFunc(1, func() { do() }); return errNoReply },
		"other Runner": func(do func() (bool, error)) error { do(); return errOther },
		"never sent":   func(func() (bool, error)) error { return errRefused },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c, l := newCrowd(t, 2)
				c.f.pass = func(n int, do func() (bool, error)) (bool, error) {
					if n == 1 {
						return false, fail(do)
					}
					return do()
				}
				begin := time.Now()
				if err := l.Unlock(t.Context()); !errors.Is(err, ErrUnavailable) {
					t.Errorf("Unlock: %v", err)
				}
				for _, got := range c.got {
					r := <-got
					if r.err != nil {
						t.Fatal(r.err)
					}
					if holder := c.f.Holder("k"); holder != r.lease.Token() {
						t.Errorf("%q has the lock, not %q", holder, r.lease.Token())
					}
					time.Sleep(2 * s) // whatever comes late comes now
					if isLost(r.lease) || c.f.Holder("k") != r.lease.Token() {
						t.Error("somebody took it away")
					}
					mustUnlock(t, r.lease)
				}
				if waited := time.Since(begin); waited > 4*s+100*time.Millisecond {
					t.Errorf("the lock was nobody's for %v", waited-4*s)
				}
				c.wantRest()
			})
		})
	}
}

// The lock was lost before it could be passed on.
func TestHandoffOfWhatIsLost(t *testing.T) {
	for name, want := range map[string]error{"nobody has it": ErrExpired, "another has it": ErrLost} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c, l := newCrowd(t, 1)
				c.f.Put("k", map[error]string{ErrLost: "another"}[want], s)
				if err := l.Unlock(t.Context()); !errors.Is(err, want) {
					t.Errorf("Unlock: %v", err)
				}
				mustWin(t, c.got[0])
				if n := len(c.f.Made("Release")); n != 1 {
					t.Errorf("%d releases; what is lost needs none", n)
				}
				c.wantRest()
			})
		})
	}
}

// An algorithm that panics, or ends the goroutine, does not keep the turn.
func TestHandoffPanics(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("bug") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c, l := newCrowd(t, 1)
				c.f.pass = func(int, func() (bool, error)) (bool, error) { end(); return false, nil }
				go func() {
					defer func() { _ = recover() }()
					l.Unlock(t.Context())
				}()
				synctest.Wait()
				c.f.Put("k", "", 0) // its lease is over
				mustWin(t, c.got[0])
				c.wantRest()
			})
		})
	}
}

// An extension is on its way while the lock is passed on, and whoever was to have it
// has gone. It is the new token that is released, and the old one that is extended.
func TestHandoffOvertakesExtension(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c, l := newCrowd(t, 0)
		ctx, cancel := context.WithCancel(t.Context())
		c.join(ctx)
		c.f.extend = func(_ context.Context, _ int, do func() error) error {
			time.Sleep(s)
			return do()
		}
		c.f.pass = func(_ int, do func() (bool, error)) (bool, error) {
			cancel()
			synctest.Wait()
			return do()
		}
		old := l.Token()
		failed := make(chan error, 1)
		go func() { failed <- l.Extend(t.Context(), time.Hour) }()
		synctest.Wait()
		mustUnlock(t, l)
		if err := <-failed; !errors.Is(err, ErrExpired) {
			t.Errorf("Extend: %v", err)
		}
		if token := c.f.Made("Extend")[0].Token; token != old {
			t.Errorf("%q was extended, not %q", token, old)
		}
		c.wantRest()
	})
}
