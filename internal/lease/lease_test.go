package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// A lock is released once, however often Unlock is called and by however many goroutines at once. That is no
// loss. The next caller gets the lock with its first try, since its turn comes after the release. Unlock also
// works with a context that has ended, as the context of a deferred Unlock often has.
func TestUnlock(t *testing.T) {
	f := fake{hooks{release: func(c call) error {
		pause(s)
		return cmp.Or(c.ctx.Err(), c.do())
	}}}
	withLease(t, &f, Options{}, func(t *testing.T, g *Locks, l *Lease) {
		f.wantHolder(t, l.Token())
		next := make(chan *Lease)
		go func() { next <- lock(t, g, &f, Options{}) }()
		synctest.Wait()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { wantError(t, l.Unlock(ended), nil) })
		}
		all.Wait()
		mustUnlock(t, <-next)
		f.wantHolder(t, "")
		f.wantCalls(t, "Take", 2)
		f.wantCalls(t, "Release", 2)
		wantIdle(t, g)
		redistest.Elapse(time.Hour)
		wantLost(t, l, false)
		f.wantCalls(t, "Extend", 0)
	})
}

// Redis is unavailable. The lock stays held in Redis until its lease ends, but the next caller gets its turn.
func TestUnlockWithoutRedis(t *testing.T) {
	f := fake{hooks{release: fails(errNoReply)}}
	withLease(t, &f, Options{Lease: s}, func(t *testing.T, g *Locks, l *Lease) {
		wantError(t, l.Unlock(t.Context()), ErrUnavailable)
		wantIdle(t, g)
		begin := time.Now()
		_ = lock(t, g, &f, Options{Lease: s}).Unlock(t.Context())
		if took := time.Since(begin); took < s || took > s+20*time.Millisecond {
			t.Errorf("the next caller got the lock after %v", took)
		}
	})
}

// A release that failed is not repeated by another Unlock, and no Unlock reports success: neither a later one,
// nor one during the failing round trip.
func TestUnlockAgainAfterAFailure(t *testing.T) {
	each(t, map[string]time.Duration{"Unlock": 0, "UnlockAfter": time.Hour}, func(t *testing.T, delay time.Duration) {
		f := fake{hooks{release: func(call) error { pause(s); return errNoReply }}}
		_, l := newLease(t, &f, Options{})
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { wantError(t, l.UnlockAfter(t.Context(), delay), errNoReply) })
		}
		all.Wait()
		wantError(t, l.UnlockAfter(t.Context(), delay), errNoReply)
		wantError(t, l.Unlock(t.Context()), errNoReply)
		f.wantCalls(t, "Release", 1)
	})
}

// The process was paused for longer than a lease, and its first step afterwards is Unlock. The error says so. It is no
// notification of a loss: the holder has ended.
func TestUnlockAfterAPause(t *testing.T) {
	var f fake
	withLease(t, &f, Options{Lease: 9 * s}, func(t *testing.T, g *Locks, l *Lease) {
		g.CancelAlarm(&l.alarm) // in a pause no alarm rings
		redistest.Elapse(10 * s)
		err := l.Unlock(t.Context())
		if !errors.Is(err, ErrExpired) || !strings.Contains(err.Error(), "was it paused?") {
			t.Errorf("Unlock returns %v", err)
		}
		wantIdle(t, g)
		wantLost(t, l, false)
	})
}

// A pausing context pauses the process, once, when its lease has begun.
type pausing struct {
	context.Context
	lease *Lease
	once  *sync.Once
}

func (p pausing) Err() error {
	if p.lease.Token() != "" {
		p.once.Do(func() { pause(10 * s) })
	}
	return p.Context.Err()
}

// The process is paused just after it has acquired a lock, until the lease has expired. The caller acquires the lock
// anew. The extension that was sent meanwhile belongs to the lease that has expired. Its reply does no harm to the new
// one.
func TestAPauseAfterTheLockWasAcquired(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Locks
		f := fake{hooks{extend: first(func(call) error { pause(20 * s); return ErrExpired })}}
		l := new(Lease)
		ctx := pausing{t.Context(), l, new(sync.Once)}
		wantError(t, g.LockAs(ctx, l, "k", &f, Options{Lease: 9 * s, Wait: time.Hour}), nil)
		f.wantCalls(t, "Take", 2)
		redistest.Elapse(30 * s)
		wantLost(t, l, false)
		f.wantHolder(t, l.Token())
		mustUnlock(t, l)
	})
}

// After UnlockAfter nobody can take the lock until the delay has passed, to the moment. A delay below a
// millisecond, the unit in which Redis counts, does not become zero.
func TestUnlockAfter(t *testing.T) {
	type situation struct{ delay, lasts time.Duration }
	each(t, map[string]situation{
		"a minute":     {time.Minute, time.Minute},
		"a nanosecond": {1, time.Millisecond},
	}, func(t *testing.T, tt situation) {
		var f fake
		g, l := newLease(t, &f, Options{})
		if err := l.UnlockAfter(t.Context(), -1); err == nil {
			t.Error("a negative delay is no error")
		}
		f.wantHolder(t, l.Token())
		wantError(t, l.UnlockAfter(t.Context(), tt.delay), nil)
		wantIdle(t, g)
		wantError(t, l.Extend(t.Context(), time.Hour), ErrExpired)
		redistest.Elapse(tt.lasts - 1)
		f.wantHolder(t, l.Token())
		redistest.Elapse(1)
		f.wantHolder(t, "")
	})
}

// An extension is under way when the holder asks for a cool-down. If both were sent, the extension might be done
// last, and the cool-down would end with the lease.
func TestUnlockAfterWaitsForExtension(t *testing.T) {
	f := fake{hooks{extend: slowly(s)}}
	withLease(t, &f, Options{Lease: 9 * s}, func(t *testing.T, _ *Locks, l *Lease) {
		redistest.Elapse(3*s + s/2) // the renewal is half-way
		wantError(t, l.UnlockAfter(t.Context(), time.Hour), nil)
		redistest.Elapse(time.Minute)
		f.wantHolder(t, l.Token())
	})
}

// Close ends the wait of all callers, also of the head, and the subscription, even one that is still being made.
// A lease that is held can still be released. Close may be called twice.
func TestCloseEndsAllWaits(t *testing.T) {
	each(t, map[string]time.Duration{"with a subscription": 0, "while subscribing": s}, func(t *testing.T, takes time.Duration) {
		server := redistest.Memory(t)
		holder, p := newProcess(t, server), newProcess(t, server)
		p.wire.takes = takes
		held, err := p.group.Lock(t.Context(), "another", p.spin, slow)
		if err != nil {
			t.Fatal(err)
		}
		l := holder.mustLock(t, slow)
		var waiting []<-chan result
		for range 3 {
			waiting = append(waiting, wait(t.Context(), p.group, p.spin, slow))
		}
		redistest.Elapse(s / 2)
		for range 2 {
			p.group.Close(errClosed)
		}
		for _, got := range waiting {
			if r := <-got; !errors.Is(r.err, errClosed) || !errors.Is(r.err, ErrUnavailable) || !strings.Contains(r.err.Error(), "was closed") || r.took > s/2 {
				t.Errorf("a caller that waited got %v after %v", r.err, r.took)
			}
		}
		if _, err := p.lock(t, Options{}); !errors.Is(err, errClosed) {
			t.Errorf("a caller that came after Close got %v", err)
		}
		if _, err := p.group.Lock(t.Context(), "a free one", p.spin, slow); !errors.Is(err, errClosed) {
			t.Errorf("a caller that came after Close, for a lock that is free, got %v", err)
		}
		redistest.Elapse(takes)
		p.wire.want(t, 0, 1)
		mustUnlock(t, held)
		mustUnlock(t, l)
	})
}

// The Group and its client are closed while a caller asks Redis for the lock. The caller's error also says that
// the Group was closed.
func TestCloseDuringAnExchange(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Locks
		f := fake{hooks{take: func(call) error {
			g.Close(errClosed)
			return fmt.Errorf("%w: %w: the client is closed", ErrUnavailable, transport.ErrRefused)
		}}}
		if _, err := g.Lock(t.Context(), "k", &f, Options{}); !errors.Is(err, errClosed) {
			t.Errorf("got %v", err)
		}
	})
}

// Sweeps end at once when their Group is closed.
func TestCloseEndsSweeps(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Locks
		f := fake{hooks{take: lands(errNoReply, 0)}}
		if _, err := g.Lock(t.Context(), "k", &f, Options{Lease: time.Hour}); !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
		redistest.Elapse(s)
		swept := len(f.Made("Release"))
		if swept < 3 {
			t.Errorf("swept %d times in a second", swept)
		}
		g.Close(errClosed)
		g.Sweeper.Sweep(&Options{Lease: s, Timeout: s}, true, func(context.Context) bool {
			t.Error("a sweep began after Close")
			return true
		})
		redistest.Elapse(time.Hour)
		f.wantCalls(t, "Release", swept)
	})
}
