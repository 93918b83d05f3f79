package locker

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// A faulty Algorithm panics in one method, in its first n calls.
type faulty struct {
	*fake
	in    string
	until atomic.Int64
}

func newFaulty(in string, until int64) *faulty {
	f := &faulty{fake: &fake{}, in: in}
	f.until.Store(until)
	f.instead = func(_ context.Context, method string, n int, do func() error) error {
		err := do()
		if method == in && int64(n) <= until {
			panic("a bug")
		}
		return err
	}
	return f
}

func (f *faulty) Valid(lease time.Duration) time.Duration {
	if f.in == "Valid" && f.until.Add(-1) >= 0 {
		panic("a bug")
	}
	return lease
}

func wantBug(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), ": a bug") {
		t.Errorf("the error is %v", err)
	}
}

// P7: if a program's own Algorithm panics, only the call fails. In one of our timers, the panic does not end the
// process.
func TestAnAlgorithmPanics(t *testing.T) {
	t.Run("Take", bubble(func(t *testing.T) {
		f := newFaulty("Take", 1)
		locks := New(f, Options{Lease: time.Minute, Wait: s})
		_, err := locks.Lock(t.Context(), "k")
		wantBug(t, err)
		mustUnlock(t, mustLock(t, locks)) // the lock was swept
		redistest.Elapse(time.Hour)
	}))
	t.Run("Release", bubble(func(t *testing.T) {
		f := newFaulty("Release", 1)
		locks := New(f, Options{})
		wantBug(t, mustLock(t, locks).Unlock(t.Context()))
		mustUnlock(t, mustLock(t, locks))
	}))
	t.Run("Release in a sweep", bubble(func(t *testing.T) {
		f := newFaulty("Release", 3)
		instead := f.instead
		f.instead = func(ctx context.Context, method string, n int, do func() error) error {
			if err := instead(ctx, method, n, do); err != nil || method != "Take" || n > 1 {
				return err
			}
			return errNoReply
		}
		locks := New(f, Options{Lease: time.Minute, Wait: s})
		_, err := locks.Lock(t.Context(), "k")
		if !errors.Is(err, errNoReply) {
			t.Error(err)
		}
		redistest.Elapse(time.Hour)
		mustUnlock(t, mustLock(t, locks))
	}))
	t.Run("Extend by the timer", bubble(func(t *testing.T) {
		f := newFaulty("Extend", 2)
		l := mustLock(t, New(f, Options{Lease: time.Minute, MaxHold: time.Hour}))
		redistest.Elapse(50 * s)
		mustExtend(t, l)
		mustUnlock(t, l)
	}))
	t.Run("Valid", bubble(func(t *testing.T) {
		f := newFaulty("Valid", 1)
		locks := New(f, Options{Lease: time.Minute, MaxHold: time.Hour, Wait: s})
		if _, err := locks.Lock(t.Context(), "k"); !errors.Is(err, ErrUnavailable) {
			t.Error(err)
		}
		l := mustLock(t, locks)
		f.until.Store(100)
		redistest.Elapse(40 * s) // the timer renews
		if !isLost(l) {
			t.Error("a lease of unknown length is held")
		}
		redistest.Elapse(time.Hour)
	}))
}
