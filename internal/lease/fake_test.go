package lease

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/leasetest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"go.uber.org/goleak"
)

// TestMain checks that no lock, whether lost or released, leaves a goroutine behind.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// second-long times read well, and cost nothing in a bubble.
const s = time.Second

// These errors may come instead of a reply.
var (
	errNoReply = fmt.Errorf("%w: the reply was lost", ErrUnavailable)
	errSilent  = fmt.Errorf("%w: %w", ErrUnavailable, os.ErrDeadlineExceeded)
	errOther   = fmt.Errorf("%w, says another client", ErrUnavailable)
	errClosed  = fmt.Errorf("%w: it was closed", ErrUnavailable)
	errRefused = fmt.Errorf("%w: %w: READONLY", ErrUnavailable, transport.ErrRefused)
)

// hooks are called in place of an algorithm's methods. Each gets the call that it replaces.
type hooks struct {
	leasetest.Locks
	take, extend, release, pass, quit func(call) error
}

// A call is the nth call of its method, counted from 1. do does what the method normally does. A hook may also
// call do later, or twice.
type call struct {
	ctx context.Context
	n   int
	do  func() error
}

func (h *hooks) call(ctx context.Context, hook func(call) error, method, key, token string, d time.Duration, do func(context.Context) error) error {
	n := h.Record(method, key, token, d)
	if hook == nil {
		return do(ctx)
	}
	return hook(call{ctx, n, func() error { return do(context.WithoutCancel(ctx)) }})
}

// fails is a hook that returns err and does nothing.
func fails(err error) func(call) error { return func(call) error { return err } }

// first applies a hook to the first call of a method only.
func first(hook func(call) error) func(call) error {
	return func(c call) error {
		if c.n == 1 {
			return hook(c)
		}
		return c.do()
	}
}

// slowly is a hook: the reply takes d.
func slowly(d time.Duration) func(call) error {
	return func(c call) error {
		pause(d)
		return c.do()
	}
}

// pause is for goroutines other than the test's own, which has redistest.Elapse.
func pause(d time.Duration) { time.Sleep(d) } // in a bubble, or between two tries

// lands is a hook: the command takes effect after each of these times, and the reply is err.
func lands(err error, after ...time.Duration) func(call) error {
	return func(c call) error {
		for _, d := range after {
			if d == 0 {
				_ = c.do()
			} else {
				time.AfterFunc(d, func() { _ = c.do() })
			}
		}
		return err
	}
}

// A fake is an Algorithm in memory, without a queue. The zero value is a Redis that works.
type fake struct{ hooks }

func (f *fake) Take(ctx context.Context, key, token, _ string, lease time.Duration) (Attempt, error) {
	var taken atomic.Bool
	err := f.call(ctx, f.take, "Take", key, token, lease, func(context.Context) error {
		taken.Store(f.Locks.Take(key, token, lease))
		return nil
	})
	if taken.Load() || err != nil {
		return Attempt{Taken: err == nil}, err
	}
	return Attempt{Holder: f.Holder(key), Left: f.Left(key)}, nil
}

func (f *fake) Extend(ctx context.Context, key, token string, d time.Duration) error {
	return f.call(ctx, f.extend, "Extend", key, token, d, f.change(key, token, d))
}

func (f *fake) Release(ctx context.Context, key, token string, after time.Duration) error {
	return f.call(ctx, f.release, "Release", key, token, after, f.change(key, token, after))
}

func (f *fake) Valid(lease time.Duration) time.Duration { return lease }

// change makes the lease of token end after d.
func (f *fake) change(key, token string, d time.Duration) func(context.Context) error {
	return func(context.Context) error {
		switch f.Change(key, token, d) {
		case token:
			return nil
		case "":
			return ErrExpired
		default:
			return ErrLost
		}
	}
}

// wantCalls checks how often a method was called.
func (h *hooks) wantCalls(t *testing.T, method string, want int) {
	t.Helper()
	if n := len(h.Made(method)); n != want {
		t.Errorf("%d calls of %s, want %d", n, method, want)
	}
}

// wantHolder checks whose token is in k.
func (f *fake) wantHolder(t *testing.T, token string) {
	t.Helper()
	if holder := f.Holder("k"); holder != token {
		t.Errorf("the lock holds %q, want %q", holder, token)
	}
}

// inBubble runs f in fake time.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Parallel()
	synctest.Test(t, f)
}

// each runs f in fake time for each row of a table.
func each[T any](t *testing.T, table map[string]T, f func(t *testing.T, row T)) {
	t.Helper()
	for name, row := range table {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) { f(t, row) })
		})
	}
}

// withLease runs do in fake time, with a lease on k.
func withLease(t *testing.T, f *fake, o Options, do func(t *testing.T, g *Locks, l *Lease)) {
	t.Helper()
	inBubble(t, func(t *testing.T) {
		g, l := newLease(t, f, o)
		do(t, g, l)
	})
}

// newLease returns a lease on k and its group, which must be empty after the test.
func newLease(t *testing.T, f *fake, o Options) (*Locks, *Lease) {
	t.Helper()
	g := new(Locks)
	l := lock(t, g, f, o)
	t.Cleanup(func() {
		_ = l.Unlock(context.Background())
		synctest.Wait()
		wantIdle(t, g)
	})
	return g, l
}

// Lock is LockAs for a new lease.
func (k *Locks) Lock(ctx context.Context, key string, a Algorithm, o Options) (*Lease, error) {
	l := new(Lease)
	err := k.LockAs(ctx, l, key, a, o)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// lock takes the lock of k, waiting until it is free.
func lock(t *testing.T, g *Locks, a Algorithm, o Options) *Lease {
	t.Helper()
	l, err := g.Lock(t.Context(), "k", a, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// wantError checks an error. If want is nil, there must be none.
func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("the error is %v, want %v", err, want)
	}
}

func mustUnlock(t *testing.T, l *Lease) {
	t.Helper()
	if l == nil {
		t.Fatal("there is no lease")
	}
	wantError(t, l.Unlock(t.Context()), nil)
}

// lose makes a holder lose its lock because of err.
func lose(l *Lease, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lose(WhyLost(err))
}

// whyLost returns why a lease was lost.
func whyLost(l *Lease) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

// isLost reports whether the holder was notified of a loss.
func isLost(l *Lease) bool {
	select {
	case <-l.Lost():
		return true
	default:
		return false
	}
}

// wantLost checks whether the holder was notified of a loss.
func wantLost(t *testing.T, l *Lease, want bool) {
	t.Helper()
	if got := isLost(l); got != want {
		t.Errorf("notified of a loss: %v", got)
	}
}

// wantIdle checks that a group has forgotten all keys and alarms.
func wantIdle(t *testing.T, g *Locks) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.keys) != 0 || g.renewals.first != nil || g.waits.first != nil {
		t.Errorf("the idle group still has %d keys, or alarms", len(g.keys))
	}
}

// wantTook checks how much time has passed since begin.
func wantTook(t *testing.T, begin time.Time, want time.Duration) {
	t.Helper()
	if took := time.Since(begin); took != want {
		t.Errorf("it took %v, want %v", took, want)
	}
}

func init() {
	HeldError = func(err error, o Owner, had, left time.Duration) error { return heldError{err, o, had, left} }
}

type heldError struct {
	err       error
	owner     Owner
	had, left time.Duration
}

func (e heldError) Error() string { return e.err.Error() }

func (e heldError) Unwrap() error { return e.err }
