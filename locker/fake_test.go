package locker

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// What may come instead of an answer.
var (
	errNoReply = fmt.Errorf("%w: the reply was lost", ErrUnavailable)
	errRefused = fmt.Errorf("%w: %w: READONLY", ErrUnavailable, transport.ErrRefused)
)

// A fake is an Algorithm in memory. It goes by the clock of the bubble, counts its
// calls, and lets a test put something else in their place. Its zero value is a
// Redis that works.
type fake struct {
	// Each is called in place of a method, for its nth call from 1 on. do is
	// what the method does otherwise; it may also be called later.
	take    func(ctx context.Context, n int, do func() (bool, error)) (bool, error)
	extend  func(ctx context.Context, n int, do func() error) error
	release func(ctx context.Context, n int, do func() error) error
	drift   time.Duration // what may not be relied on of any lease

	mu    sync.Mutex // guards all below
	locks map[string]entry
	calls []call
}

type entry struct {
	token string
	end   time.Time
}

type call struct {
	method, key, token string
	d                  time.Duration
	at                 time.Time
}

func (f *fake) Take(ctx context.Context, key, token string, lease time.Duration) (Attempt, error) {
	taken, err := f.try(ctx, key, token, lease)
	if taken || err != nil {
		return Attempt{Taken: taken}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return Attempt{Holder: f.holderLocked(key), Left: time.Until(f.locks[key].end)}, nil
}

func (f *fake) Valid(lease time.Duration) time.Duration { return lease - f.drift }

func (f *fake) try(ctx context.Context, key, token string, lease time.Duration) (bool, error) {
	n := f.record(call{"Take", key, token, lease, time.Now()})
	do := func() (bool, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if holder := f.holderLocked(key); holder != "" && holder != token {
			return false, nil
		}
		f.putLocked(key, token, lease)
		return true, nil
	}
	if f.take != nil {
		return f.take(ctx, n, do)
	}
	return do()
}

func (f *fake) Extend(ctx context.Context, key, token string, d time.Duration) error {
	n := f.record(call{"Extend", key, token, d, time.Now()})
	do := func() error { return f.change(key, token, d) }
	if f.extend != nil {
		return f.extend(ctx, n, do)
	}
	return do()
}

func (f *fake) Release(ctx context.Context, key, token string, after time.Duration) error {
	n := f.record(call{"Release", key, token, after, time.Now()})
	do := func() error { return f.change(key, token, after) }
	if f.release != nil {
		return f.release(ctx, n, do)
	}
	return do()
}

// change makes the lease of token end d from now.
func (f *fake) change(key, token string, d time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch f.holderLocked(key) {
	case "":
		return ErrExpired
	case token:
		f.putLocked(key, token, d)
		return nil
	default:
		return ErrLost
	}
}

// record returns how many calls of its method there are now.
func (f *fake) record(c call) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, c)
	return len(f.madeLocked(c.method))
}

func (f *fake) holderLocked(key string) string {
	if e := f.locks[key]; time.Now().Before(e.end) {
		return e.token
	}
	return ""
}

func (f *fake) putLocked(key, token string, d time.Duration) {
	if f.locks == nil {
		f.locks = make(map[string]entry)
	}
	f.locks[key] = entry{token, time.Now().Add(d)}
}

// put makes somebody else the holder of key for d; not even a token can help it.
func (f *fake) put(key, token string, d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.putLocked(key, token, d)
}

// holder returns the token in key, or "".
func (f *fake) holder(key string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.holderLocked(key)
}

// made returns the calls of one method so far.
func (f *fake) made(method string) []call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.madeLocked(method)
}

func (f *fake) madeLocked(method string) []call {
	var calls []call
	for _, c := range f.calls {
		if c.method == method {
			calls = append(calls, c)
		}
	}
	return calls
}

// inBubble runs f in virtual time. There synctest.Wait returns when everybody
// waits for something, so "still waits" is a fact.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Parallel()
	synctest.Test(t, f)
}

// second-long times read well, and cost nothing in a bubble.
const s = time.Second

// wantIdle says that no caller of this process is left at key "k".
func wantIdle(t *testing.T, g *lease.Group) {
	t.Helper()
	l, err := g.Lock(t.Context(), "k", theirs{&fake{}}, lease.Options{Wait: NoWait})
	if err != nil {
		t.Fatalf("somebody is left: %v", err)
	}
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

// lockWith takes key, which is free or becomes so.
func lockWith(t *testing.T, locks Locker) *Lease {
	t.Helper()
	l, err := locks.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// after runs f once d has passed and everything that happens then has happened.
func after(d time.Duration, f func()) {
	time.Sleep(d)
	synctest.Wait()
	f()
}

// isLost tells whether the holder has been told.
func isLost(l *Lease) bool {
	select {
	case <-l.Lost():
		return true
	default:
		return false
	}
}
