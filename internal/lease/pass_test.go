package lease

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// A crowd is callers of one process that wait for one key, in the order in which they came.
type crowd struct {
	*peer
	t      *testing.T
	server *redistest.Server
	got    []<-chan result
}

// withCrowd runs f in fake time, with newCrowd.
func withCrowd(t *testing.T, n int, f func(c *crowd, l *Lease)) {
	t.Helper()
	inBubble(t, func(t *testing.T) { f(newCrowd(t, n)) })
}

// newCrowd returns the lock and n callers of its process that wait for it.
func newCrowd(t *testing.T, n int) (*crowd, *Lease) {
	t.Helper()
	server := redistest.Memory(t)
	c := &crowd{peer: newProcess(t, server), t: t, server: server}
	l := c.mustLock(t, Options{})
	for range n {
		c.join(t.Context(), Options{Wait: time.Minute})
	}
	return c, l
}

// join adds another caller.
func (c *crowd) join(ctx context.Context, o Options) {
	c.got = append(c.got, wait(ctx, c.group, c.spin, o))
	synctest.Wait()
}

// holds returns the lease of the ith caller, which must have the lock by now.
func (c *crowd) holds(i int) *Lease {
	c.t.Helper()
	synctest.Wait()
	select {
	case r := <-c.got[i]:
		if r.err != nil {
			c.t.Fatalf("number %d: %v", i, r.err)
		}
		if r.lease.Validity() <= 0 || isLost(r.lease) {
			c.t.Errorf("number %d has a lease that has ended", i)
		}
		return r.lease
	default:
		c.t.Fatalf("number %d does not have the lock", i)
		return nil
	}
}

// wantHolder checks who has the lock in Redis.
func (c *crowd) wantHolder(l *Lease) {
	c.t.Helper()
	if holder, _ := c.server.Get(c.t, "k"); holder != l.Token() {
		c.t.Errorf("%q has the lock, not %q", holder, l.Token())
	}
}

// The lock is passed on in the order in which the callers came, by one round trip each, and is never free. Each
// caller has a token of its own.
func TestHandoff(t *testing.T) {
	withCrowd(t, 5, func(c *crowd, l *Lease) {
		seen := map[string]bool{l.Token(): true}
		for i := range 5 {
			mustUnlock(c.t, l)
			l = c.holds(i)
			c.wantHolder(l)
			if seen[l.Token()] {
				c.t.Errorf("number %d has the token %q of another", i, l.Token())
			}
			seen[l.Token()] = true
		}
		mustUnlock(c.t, l)
		for method, n := range map[string]int{"Take": 1, "Pass": 5, "Release": 1} {
			c.spin.wantCalls(c.t, method, n)
		}
	})
}

// While another process waits, a process passes the lock on for a short time only, however long its callers hold
// it. Alone, it does so for longer.
func TestHandoffEndsWithTheTurn(t *testing.T) {
	type situation struct {
		hold   time.Duration
		others bool
		served int // holders, before the turn of another process
	}
	each(t, map[string]situation{
		"a moment":        {0, true, maxHolders},
		"a while":         {maxTime / 4, true, 4},
		"long":            {s, true, 1},
		"a moment, alone": {0, false, 100},
		"a while, alone":  {maxTime, false, int(maxTimeAlone / maxTime)},
		"long, alone":     {2 * s, false, 1},
	}, func(t *testing.T, tt situation) {
		c, l := newCrowd(t, 100)
		begun, others := 0, []<-chan result{nil, nil, nil}
		if tt.others {
			other := newProcess(c.t, c.server)
			others[0] = other.joins(c.t, c.t.Context(), c.server, slow) // longer than a turn lasts
			for i := range 2 {
				others[1+i] = wait(c.t.Context(), other.group, other.spin, slow)
				synctest.Wait()
			}
			mustUnlock(c.t, l)
			mustUnlock(c.t, c.holds(0)) // its Pass reports that others wait
			l = (<-others[0]).lease
			redistest.Elapse(2 * maxTime)
			mustUnlock(c.t, l)
			mustWin(c.t, others[1])
			l, begun = c.holds(1), 2
		}
		for i := range tt.served {
			if pause(tt.hold); i == tt.served-1 {
				break
			}
			mustUnlock(c.t, l)
			l = c.holds(begun + i)
		}
		passes := len(c.spin.Made("Pass"))
		if mustUnlock(c.t, l); len(c.spin.Made("Pass")) > passes && begun+tt.served < 100 {
			c.t.Error("the lock is passed on once more")
		}
		if tt.others {
			mustWin(c.t, others[2])
		}
		for i := begun + tt.served - 1; i < 100; i++ { // all get the lock in the end
			mustWin(c.t, c.got[i])
		}
	})
}

// The caller that is to get the lock goes away during the Pass. The next caller gets the lock; if there is none,
// the lock is free. An extension that is under way meanwhile uses the old token.
func TestHandoffToWhoHasGone(t *testing.T) {
	type situation struct {
		next, extends bool
		label         string // of the next caller
	}
	each(t, map[string]situation{
		"the next caller has it":      {next: true},
		"a caller with another label": {next: true, label: "next"},
		"nobody waits":                {},
		"an extension is under way":   {extends: true},
	}, func(t *testing.T, tt situation) {
		c, l := newCrowd(t, 0)
		ctx, cancel := context.WithCancel(c.t.Context())
		c.join(ctx, Options{})
		if tt.next {
			c.join(c.t.Context(), Options{Label: tt.label})
		}
		c.spin.pass = func(p call) error {
			cancel()
			pause(1) // for all others to notice
			return p.do()
		}
		extended := make(chan error, 1)
		if tt.extends {
			c.spin.extend = slowly(s)
			go func() { extended <- l.Extend(c.t.Context(), time.Hour) }()
			synctest.Wait()
		}
		old := l.Token()
		mustUnlock(c.t, l)
		if tt.extends {
			if err := <-extended; !errors.Is(err, ErrExpired) || c.spin.Made("Extend")[0].Token != old {
				c.t.Errorf("Extend of %+v: %v", c.spin.Made("Extend"), err)
			}
		}
		wantError(c.t, (<-c.got[0]).err, context.Canceled)
		if tt.next {
			l := c.holds(1)
			c.wantHolder(l)
			if o, _ := ParseToken(l.Token()); o.Label != tt.label {
				c.t.Errorf("the token has the label %q, want %q", o.Label, tt.label)
			}
			mustUnlock(c.t, l)
		}
		if c.server.Exists(c.t, "k") {
			c.t.Error("somebody has the lock")
		}
	})
}

// The reply to a pass is lost, so no caller has the lock. It must not be held by two, nor stay blocked for a
// whole lease.
func TestHandoffInDoubt(t *testing.T) {
	each(t, map[string]func(call) error{
		"done":                      lands(errNoReply, 0),
		"comes later":               lands(errNoReply, s),
		"comes soon":                lands(errNoReply, 1),
		"done, says another client": lands(errOther, 0),
		"never sent":                fails(errRefused),
	}, func(t *testing.T, fail func(call) error) {
		c, l := newCrowd(t, 2)
		c.spin.pass = first(fail)
		begin := time.Now()
		wantError(c.t, l.Unlock(c.t.Context()), ErrUnavailable)
		for _, got := range c.got {
			r := <-got
			if r.err != nil {
				c.t.Fatal(r.err)
			}
			c.wantHolder(r.lease)
			redistest.Elapse(2 * s) // a late command is done by now
			wantLost(c.t, r.lease, false)
			c.wantHolder(r.lease)
			mustUnlock(c.t, r.lease)
		}
		if waited := time.Since(begin); waited > 4*s+100*time.Millisecond {
			c.t.Errorf("nobody had the lock for %v", waited-4*s)
		}
	})
}

// Before the lock could be passed on, it was lost or had expired, or the algorithm panics or ends the goroutine.
// The turn still goes on: the next caller takes the lock anew.
func TestHandoffOfWhatIsLost(t *testing.T) {
	type situation struct {
		holder   string // "": none
		pass     func(call) error
		want     error
		releases int
	}
	each(t, map[string]situation{
		"nobody has it":  {want: ErrExpired, releases: 1},
		"another has it": {holder: "another", want: ErrLost, releases: 1},
		"panic":          {pass: func(call) error { panic("a bug") }, releases: 1},
		"Goexit":         {pass: func(call) error { runtime.Goexit(); return nil }, releases: 1},
	}, func(t *testing.T, tt situation) {
		c, l := newCrowd(t, 1)
		c.spin.pass = tt.pass
		c.server.Do(c.t, "DEL", "k")
		if tt.holder != "" {
			c.server.Do(c.t, "SET", "k", tt.holder, "PX", 1000)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() { _ = recover() }()
			wantError(c.t, l.Unlock(c.t.Context()), tt.want)
		}()
		<-done
		mustWin(c.t, c.got[0])
		c.spin.wantCalls(c.t, "Release", tt.releases) // after a panic: the token is not there any more
	})
}
