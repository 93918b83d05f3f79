package locker

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// The error of a wait names the holder, if what is in the key does.
func TestHeldErrorText(t *testing.T) {
	for name, tt := range map[string]struct {
		value func(since int64) string
		held  time.Duration
		want  string
	}{
		"with a label":         {token(" POST /cart"), 1200 * time.Millisecond, "lock is held by web-3/4711 POST /cart for 1.2s"},
		"without":              {token(""), time.Hour, "lock is held by web-3/4711 for 1h0m0s"},
		"to the millisecond":   {token(""), 1_400_000, "lock is held by web-3/4711 for 1ms"},
		"its clock is ahead":   {token(""), -time.Hour, "lock is held by web-3/4711 for 0s"},
		"nobody knows":         {func(int64) string { return "" }, s, "lock is still held by another"},
		"not a token":          {func(int64) string { return "value" }, s, "lock is still held by another: the lock's key belongs to something else"},
		"since before the era": {func(int64) string { return token("")(-1_700_000_000_000) }, 0, "lock is held by web-3/4711 for 735190h13m20s"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				value := tt.value(time.Now().UnixMilli())
				if tt.held < 0 {
					value = tt.value(time.Now().Add(-tt.held).UnixMilli())
				}
				time.Sleep(max(0, tt.held))
				_, err := New(heldBy(value), Options{Wait: NoWait}).Lock(t.Context(), "k")
				if !strings.HasSuffix(err.Error(), "k: "+tt.want) {
					t.Errorf("%v", err)
				}
				_, named := errors.AsType[*HeldError](err)
				if !errors.Is(err, ErrTimeout) || named != strings.Contains(tt.want, "web-3") || errors.Is(err, ErrForeign) != (value == "value") {
					t.Errorf("what it wraps is wrong: %#v", err)
				}
			})
		})
	}
}

// token returns one that was made then, with what follows its process.
func token(label string) func(since int64) string {
	return func(since int64) string {
		return "ABCDEFGHIJKLMNOPQRSTUVWXYZ " + strconv.FormatInt(since, 10) + " web-3/4711" + label
	}
}

// heldBy is an Algorithm whose lock another has.
func heldBy(token string) Algorithm {
	return othersLock{&fake{}, token}
}

type othersLock struct {
	*fake
	token string
}

func (o othersLock) Take(context.Context, string, string, time.Duration) (Attempt, error) {
	return Attempt{Holder: o.token}, nil
}

// Whoever waits in vain learns who has the lock: in line behind a caller of the
// same process, at the head of it, or behind one who waits himself.
func TestHeldErrorOfWaiters(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var f fake
		here, other := newLock(theirs{&f}, nil, Options{}), newLock(theirs{&f}, nil, Options{})
		l, err := here.Lock(WithLabel(t.Context(), "GET /slow"), "k")
		if err != nil {
			t.Fatal(err)
		}
		for _, waiter := range []struct {
			name string
			lock *lock
			wait time.Duration
		}{{"in line", here, 3 * s}, {"at Redis", other, 3 * s}, {"behind the one at Redis", other, 2 * s}} {
			waiter.lock.options.Wait = waiter.wait
			go func() {
				_, err := waiter.lock.Lock(WithLabel(t.Context(), "GET /other"), "k")
				held, ok := errors.AsType[*HeldError](err)
				if !ok || held.Owner.Label != "GET /slow" || held.Owner.PID != os.Getpid() || held.For.Truncate(s) != waiter.wait {
					t.Errorf("%s: %v", waiter.name, err)
				}
				if want := "k: lock is held by " + held.Owner.String() + " for "; err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v, want %q in it", waiter.name, err, want)
				}
			}()
			synctest.Wait()
		}
		time.Sleep(4 * s)
		mustUnlock(t, l)
	})
}

// So does the caller that is one too many, without a wait.
func TestHeldErrorOfOneTooMany(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		locks := newLock(theirs{&fake{}}, nil, Options{MaxWaiters: 1})
		l, err := locks.Lock(WithLabel(t.Context(), "GET /slow"), "k")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if waiter, err := locks.Lock(t.Context(), "k"); err == nil {
				mustUnlock(t, waiter)
			}
		}()
		time.Sleep(3 * s)
		_, err = locks.Lock(t.Context(), "k")
		held, named := errors.AsType[*HeldError](err)
		if !errors.Is(err, ErrTooManyWaiters) || errors.Is(err, ErrTimeout) || !named || held.Owner.Label != "GET /slow" || held.For != 3*s {
			t.Errorf("error %v", err)
		}
		if want := "too many wait for this lock already: it is held by " + held.Owner.String() + " for 3s"; !strings.HasSuffix(err.Error(), want) {
			t.Errorf("error %q, want %q at its end", err, want)
		}
		mustUnlock(t, l)
		synctest.Wait()
	})
}

// The holder has given the lock back, and nobody knows yet who comes next. It
// would be wrong to name the one before.
func TestHeldErrorNamesNobodyGone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := fake{take: func(_ context.Context, n int, do func() (bool, error)) (bool, error) {
			if n > 1 {
				time.Sleep(5 * s)
			}
			return do()
		}}
		locks := newLock(theirs{&f}, nil, Options{})
		l := lockWith(t, locks)
		go func() { mustUnlock(t, lockWith(t, locks)) }()
		synctest.Wait()
		mustUnlock(t, l)
		locks.options.Wait = s
		_, err := locks.Lock(t.Context(), "k")
		if _, named := errors.AsType[*HeldError](err); named || !errors.Is(err, ErrTimeout) {
			t.Errorf("error %v", err)
		}
		time.Sleep(time.Minute)
	})
}

// A caller whose own context ends is told that, and not who held the lock.
func TestHeldErrorNotForWhoLeaves(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		locks := New(&fake{}, Options{})
		l := lockWith(t, locks)
		ctx, cancel := context.WithTimeout(t.Context(), s)
		defer cancel()
		_, err := locks.Lock(ctx, "k")
		if _, named := errors.AsType[*HeldError](err); named || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		mustUnlock(t, l)
	})
}

// In Redis, too: the token tells who it is, and another's value is no lock.
func TestOwnerInRedis(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		o := patient
		o.Wait = NoWait
		l, err := newProcess(t, server, o).Lock(WithLabel(t.Context(), "GET /slow"), "k")
		if err != nil {
			t.Fatal(err)
		}
		if token, _ := server.Get(t, "k"); !strings.HasSuffix(token, "/"+strconv.Itoa(os.Getpid())+" GET /slow") {
			t.Errorf("the key holds %q", token)
		}
		_, err = newProcess(t, server, o).Lock(t.Context(), "k")
		if held, ok := errors.AsType[*HeldError](err); !ok || held.Owner.PID != os.Getpid() || held.Owner.Label != "GET /slow" {
			t.Errorf("error %v", err)
		}
		mustUnlock(t, l)

		server.Do(t, "SET", "k", "something else", "PX", 60_000)
		_, err = newProcess(t, server, o).Lock(t.Context(), "k")
		if !errors.Is(err, ErrTimeout) || !errors.Is(err, ErrForeign) {
			t.Errorf("error %v", err)
		}
	})
}
