package lease

import (
	"cmp"
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// A lock is given back once, however often and by however many goroutines at once, and is not lost
// then. The next caller has it with its first try, since its turn comes after the release. A context
// that has ended is no reason to leave the lock shut: that is how a deferred Unlock often comes.
func TestUnlock(t *testing.T) {
	f := fake{hooks{release: func(c call) error {
		pause(s)
		return cmp.Or(c.ctx.Err(), c.do())
	}}}
	withLease(t, &f, Options{}, func(t *testing.T, g *Group, l *Lease) {
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

// Redis is away: the lock stays shut for its lease, but the next one's turn comes.
func TestUnlockWithoutRedis(t *testing.T) {
	f := fake{hooks{release: fails(errNoReply)}}
	withLease(t, &f, Options{Lease: s}, func(t *testing.T, g *Group, l *Lease) {
		wantError(t, l.Unlock(t.Context()), ErrUnavailable)
		wantIdle(t, g)
		begin := time.Now()
		_ = lock(t, g, &f, Options{Lease: s}).Unlock(t.Context())
		if took := time.Since(begin); took < s || took > s+20*time.Millisecond {
			t.Errorf("the next one has it after %v", took)
		}
	})
}

// After UnlockAfter nobody has the lock for that time, to the moment. A delay that is shorter than
// what Redis counts in does not become none.
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

// An extension is on its way when the holder sets a cool-down. Were the two to meet, the extension
// might be the last, and the cool-down be over with the lease.
func TestUnlockAfterWaitsForExtension(t *testing.T) {
	f := fake{hooks{extend: slowly(s)}}
	withLease(t, &f, Options{Lease: 9 * s}, func(t *testing.T, _ *Group, l *Lease) {
		redistest.Elapse(3*s + s/2) // the renewal is half-way
		wantError(t, l.UnlockAfter(t.Context(), time.Hour), nil)
		redistest.Elapse(time.Minute)
		f.wantHolder(t, l.Token())
	})
}
