package lockertest

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/a2139e8d/latchkey/locker"
)

// At any time, one caller of all processes has the lock.
func excludes(c *check) {
	compete(c, 3)
}

// The same holds if connections break all the time: a command whose reply was lost takes effect once or not
// at all, whichever caller has the lock by then.
func excludesOnBadNetwork(c *check) {
	compete(c, 1, LoseReply, CutReply, LoseCommand)
}

// Any string of up to MaxKey bytes is a key. A lock does not block any other key, however similar the two
// are.
func keysAreIndependent(c *check) {
	keys := []string{"k", "K", "k ", "kk", "{k}", "{k}k", "k{", "k}", "k\x00", "käse", "k.", "k:owner",
		"\x00\xff", "a\r\nb", "{}", " ", strings.Repeat("k", locker.MaxKey)}
	p := c.New(with(func(o *locker.Options) { o.Wait = locker.NoWait }))
	leases := make([]*locker.Lease, len(keys))
	for i, key := range keys {
		leases[i] = c.lock(p, key)
	}
	for i, key := range keys {
		c.held(key)
		c.extend(leases[i])
		c.unlock(leases[i])
		c.unlock(c.lock(c.outsider, key)) // the other keys are still locked
	}
	c.nothingLeft()
}

// compete checks that each caller of three processes holds the lock several times, and never two at once:
// from the return of Lock to the call of Unlock. Before each operation one of the faults happens, in turn.
func compete(c *check, callers int, faults ...Fault) {
	options := patient
	if !c.kind.SeesRelease { // its callers must poll
		options.Wait = locker.NoWait
	}
	var inside atomic.Bool
	var all sync.WaitGroup
	for process := range 3 {
		p := c.New(options)
		for caller := range callers {
			id := process*callers + caller
			all.Go(func() {
				for round := range 5 {
					disturb(c, p, faults, id+2*round)
					l, err := p.Lock(c.ctx, "contested")
					for !c.kind.SeesRelease && errors.Is(err, locker.ErrTimeout) && c.pause() {
						l, err = p.Lock(c.ctx, "contested")
					}
					if err != nil {
						c.Error(err)
						return
					}
					if !inside.CompareAndSwap(false, true) {
						c.Error("two callers have the lock")
					}
					c.pause() // a chance for any caller that is not excluded
					inside.Store(false)

					disturb(c, p, faults, id+2*round+1)
					err = l.Unlock(c.ctx)
					// A repeated release finds the lock free, or held by another caller.
					repeated := faults != nil && (errors.Is(err, locker.ErrExpired) || errors.Is(err, locker.ErrLost))
					if err != nil && !repeated {
						c.Errorf("Unlock: %v", err)
					}
				}
			})
		}
	}
	all.Wait()
	c.nothingLeft()
}

// disturb makes the next round trip of p to one of the nodes fail.
func disturb(c *check, p *Process, faults []Fault, turn int) {
	if faults != nil {
		p.Break(turn%c.kind.Nodes, faults[turn%len(faults)])
	}
}

// Invalid keys and options are refused, by an error that says what is wrong, without a command to Redis.
func refuses(c *check) {
	for says, change := range map[string]func(o *locker.Options){
		"the key has":        func(*locker.Options) {},
		"Options.Lease":      func(o *locker.Options) { o.Lease = -1 },
		"Options.Wait":       func(o *locker.Options) { o.Wait = -1 },
		"Options.MaxHold":    func(o *locker.Options) { o.MaxHold = -1 },
		"Options.MaxWaiters": func(o *locker.Options) { o.MaxWaiters = -1 },
		"Options.Timeout":    func(o *locker.Options) { o.Timeout = -1 },
	} {
		p := c.New(with(change))
		for _, key := range []string{"", strings.Repeat("k", locker.MaxKey+1)} {
			_, err := p.Lock(c.ctx, key)
			if err == nil || !strings.Contains(err.Error(), says) {
				c.Errorf("error %v, want one that says %q", err, says)
			}
		}
		if n := p.Exchanges(); n != 0 {
			c.Errorf("%s: %d round trips nevertheless", says, n)
		}
	}
}
