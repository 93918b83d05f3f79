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

// join adds one more.
func (c *crowd) join(ctx context.Context, o Options) {
	c.got = append(c.got, wait(ctx, c.group, c.spin, o))
	synctest.Wait()
}

// holds returns the lease of the ith that waited, who must have it by now.
func (c *crowd) holds(i int) *Lease {
	c.t.Helper()
	synctest.Wait()
	select {
	case r := <-c.got[i]:
		if r.err != nil {
			c.t.Fatalf("number %d: %v", i, r.err)
		}
		if r.lease.Validity() <= 0 || isLost(r.lease) {
			c.t.Errorf("number %d has a lease that is over", i)
		}
		return r.lease
	default:
		c.t.Fatalf("number %d does not have it", i)
		return nil
	}
}

// wantHolder says who has the lock by Redis's account.
func (c *crowd) wantHolder(l *Lease) {
	c.t.Helper()
	if holder, _ := c.server.Get(c.t, "k"); holder != l.Token() {
		c.t.Errorf("%q has the lock, not %q", holder, l.Token())
	}
}

// The lock is passed on in the order they came, by one round trip each, and is never free. Each has a
// token of its own.
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

// While another process waits, the lock is passed on for a moment only, whether they hold it for no
// time or for long. Alone it is longer.
func TestHandoffEndsWithTheTurn(t *testing.T) {
	type situation struct {
		hold   time.Duration
		others bool
		served int // and then it is another's turn
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
			mustUnlock(c.t, c.holds(0)) // who knows that others wait
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
			c.t.Error("it is passed on once more")
		}
		if tt.others {
			mustWin(c.t, others[2])
		}
		for i := begun + tt.served - 1; i < 100; i++ { // and all get it in the end
			mustWin(c.t, c.got[i])
		}
	})
}

// Whoever was to have the lock has gone while Redis was told. The next one has it, or else it is free.
// An extension that is on its way meanwhile is that of the old token.
func TestHandoffToWhoHasGone(t *testing.T) {
	type situation struct {
		next, extends bool
		label         string // of the next one
	}
	each(t, map[string]situation{
		"the next one has it":      {next: true},
		"one with another label":   {next: true, label: "next"},
		"nobody waits":             {},
		"an extension comes later": {extends: true},
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
				c.t.Errorf("the lock says that %q holds it, not %q", o.Label, tt.label)
			}
			mustUnlock(c.t, l)
		}
		if c.server.Exists(c.t, "k") {
			c.t.Error("somebody has the lock")
		}
	})
}

// The answer to a pass is lost. Nobody has the lock then: neither may two hold it, nor is it shut for
// a whole lease.
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
			redistest.Elapse(2 * s) // whatever comes late comes now
			wantLost(c.t, r.lease, false)
			c.wantHolder(r.lease)
			mustUnlock(c.t, r.lease)
		}
		if waited := time.Since(begin); waited > 4*s+100*time.Millisecond {
			c.t.Errorf("the lock was nobody's for %v", waited-4*s)
		}
	})
}

// The lock was lost before it could be passed on, or is over, or the algorithm panics or ends the
// goroutine. The turn goes on all the same: the next one takes the lock anew.
func TestHandoffOfWhatIsLost(t *testing.T) {
	type situation struct {
		holder   string // "": nobody
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
		c.spin.wantCalls(c.t, "Release", tt.releases) // what is lost needs none
	})
}
