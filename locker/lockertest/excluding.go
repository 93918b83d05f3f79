package lockertest

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/a2139e8d/latchkey/locker"
)

// Of all callers in all processes, one at a time has the lock.
func excludes(c *check) {
	compete(c, contest{processes: 3, callers: 3, rounds: 4})
}

// It is the same where connections break all the time: a command whose reply was
// lost takes effect once or not at all, no matter who has the lock by then.
func excludesOnBadNetwork(c *check) {
	compete(c, contest{processes: 3, callers: 1, rounds: 6, faults: []Fault{LoseReply, CutReply, LoseCommand}})
}

// A lock keeps nobody from another key, however alike the two may look.
func keysAreIndependent(c *check) {
	keys := []string{"k", "K", "k ", "kk", "{k}", "{k}k", "k{", "k}", "k\x00", "käse", "k.", "k:owner"}
	p := c.New(with(func(o *locker.Options) { o.Wait = locker.NoWait }))
	leases := make([]*locker.Lease, len(keys))
	for i, key := range keys {
		leases[i] = c.lock(p, key)
	}
	for i, key := range keys {
		c.held(key)
		c.extend(leases[i])
		c.unlock(leases[i])
		c.unlock(c.lock(c.outsider, key)) // the others are still locked
	}
	c.nothingLeft()
}

// A contest is several callers, each of whom takes one lock several times.
type contest struct {
	processes, callers, rounds int
	faults                     []Fault // before each operation one of them, in turn
}

// compete checks that everybody has been inside as often as the rules say, and nobody
// together with another: from the return of Lock to the call of Unlock.
func compete(c *check, rules contest) {
	options := patient
	if !c.kind.SeesRelease { // whose callers have to ask again by themselves
		options.Wait = locker.NoWait
	}
	var inside atomic.Bool
	var all sync.WaitGroup
	for process := range rules.processes {
		p := c.New(options)
		for caller := range rules.callers {
			id := process*rules.callers + caller
			all.Go(func() {
				for round := range rules.rounds {
					disturb(c, p, rules.faults, id+2*round)
					l, err := p.Lock(c.ctx, "contested")
					for !c.kind.SeesRelease && errors.Is(err, locker.ErrTimeout) && c.pause() {
						l, err = p.Lock(c.ctx, "contested")
					}
					if err != nil {
						c.Error(err)
						return
					}
					if !inside.CompareAndSwap(false, true) {
						c.Error("two have the lock")
					}
					c.pause() // an invitation to all that are not kept out
					inside.Store(false)

					disturb(c, p, rules.faults, id+2*round+1)
					err = l.Unlock(c.ctx)
					// A release that is repeated finds the lock free, or another's.
					repeated := rules.faults != nil && (errors.Is(err, locker.ErrExpired) || errors.Is(err, locker.ErrLost))
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

// disturb makes the next exchange of p with one of the nodes fail.
func disturb(c *check, p *Process, faults []Fault, turn int) {
	if faults != nil {
		p.Break(turn%c.kind.Nodes, faults[turn%len(faults)])
	}
}
