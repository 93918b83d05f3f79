package locker

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// The error of a wait names the holder, if the value of the key names it.
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
		"nobody knows":         {func(int64) string { return "" }, s, "lock is still held by another holder"},
		"not a token":          {func(int64) string { return "value" }, s, "lock is still held by another holder: the lock's key belongs to something else"},
		"since before the era": {func(int64) string { return token("")(-1_700_000_000_000) }, 0, "lock is held by web-3/4711 for 735190h13m20s"},
	} {
		t.Run(name, bubble(func(t *testing.T) {
			value := tt.value(time.Now().Add(max(0, -tt.held)).UnixMilli())
			redistest.Elapse(max(0, tt.held))
			_, err := New(othersLock{&fake{}, value}, Options{Wait: NoWait}).Lock(t.Context(), "k")
			if !strings.HasSuffix(err.Error(), "k: "+tt.want) {
				t.Errorf("%v", err)
			}
			_, named := errors.AsType[*HeldError](err)
			if !errors.Is(err, ErrTimeout) || named != strings.Contains(tt.want, "web-3") || errors.Is(err, ErrForeign) != (value == "value") {
				t.Errorf("it wraps the wrong errors: %#v", err)
			}
		}))
	}
}

// token returns a token from a given time, with label behind the process.
func token(label string) func(since int64) string {
	return func(since int64) string {
		return "ABCDEFGHIJKLMNOPQRSTUVWXYZ " + strconv.FormatInt(since, 10) + " web-3/4711" + label
	}
}

// othersLock is an Algorithm whose lock another holder has.
type othersLock struct {
	*fake
	token string
}

func (o othersLock) Take(context.Context, string, string, time.Duration) (Attempt, error) {
	return Attempt{Holder: o.token}, nil
}

// The error says when the lease of the holder ends, if that is known: in this process, in another, and in a
// cool-down, in which the last holder counts as the holder.
func TestHeldErrorTellsTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := &fake{}
		here, there := New(f, Options{Wait: NoWait}), New(f, Options{Wait: NoWait})
		full := New(f, Options{MaxWaiters: 1})
		want := func(what string, locks Locker, left time.Duration) {
			t.Helper()
			_, err := locks.Lock(t.Context(), "k")
			held, named := errors.AsType[*HeldError](err)
			if text := ", and its lease ends in " + left.String(); !named || held.Left != left || !strings.HasSuffix(err.Error(), text) {
				t.Errorf("%s: %v, want%s", what, err, text)
			}
		}
		l := mustLock(t, here)
		redistest.Elapse(s)
		want("this process", here, 9*s)
		want("another process", there, 9*s)
		for range 2 { // the first one is the head, and asks Redis
			go func() {
				if l, err := full.Lock(t.Context(), "k"); err == nil {
					_ = l.Unlock(t.Context())
				}
			}()
			synctest.Wait()
		}
		want("a full line", full, 9*s)
		if err := l.UnlockAfter(t.Context(), time.Hour); err != nil {
			t.Error(err)
		}
		redistest.Elapse(s)
		want("a cool-down", there, time.Hour-s)
	})
}

// The error of a context that has ended is the context's, and names the holder.
func TestHeldErrorOfAContext(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := &fake{}
		l, err := New(f, Options{}).Lock(WithLabel(t.Context(), "daily report"), "k")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), s)
		defer cancel()
		_, err = New(f, Options{}).Lock(ctx, "k")
		held, named := errors.AsType[*HeldError](err)
		if !named || held.Owner.Label != "daily report" || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrTimeout) ||
			!strings.Contains(err.Error(), "k: context deadline exceeded: the lock is held by ") {
			t.Errorf("%v", err)
		}
		mustUnlock(t, l)
	})
}

// The holder has released the lock, and nobody knows yet who comes next. The error must not name the last holder.
func TestHeldErrorNamesNobodyGone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := fake{instead: func(_ context.Context, method string, n int, do func() error) error {
			if method == "Take" && n > 1 {
				spend(5 * s)
			}
			return do()
		}}
		locks := newLock(own{Algorithm: &f}, nil, Options{})
		l := mustLock(t, locks)
		go func() { mustUnlock(t, mustLock(t, locks)) }()
		synctest.Wait()
		mustUnlock(t, l)
		locks.options.Wait = s
		_, err := locks.Lock(t.Context(), "k")
		if _, named := errors.AsType[*HeldError](err); named || !errors.Is(err, ErrTimeout) {
			t.Errorf("error %v", err)
		}
	})
}
