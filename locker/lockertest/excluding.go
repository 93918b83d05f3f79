package lockertest

import (
	"errors"
	"runtime"
	"sync"
	"time"

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

// compete judges a contest in two ways. Each caller increments a variable that
// only the lock guards, so none may miss what another wrote. And the history of
// what was called and returned must make sense.
func compete(c *check, rules contest) {
	n, want := 0, 0
	h := history{began: time.Now()}
	options := patient
	if !c.kind.SeesRelease { // whose callers have to ask again by themselves
		options.Wait = locker.NoWait
	}
	var all sync.WaitGroup
	for process := range rules.processes {
		p := c.New(options)
		for caller := range rules.callers {
			want += rules.rounds
			id := process*rules.callers + caller
			all.Go(func() {
				for round := range rules.rounds {
					disturb(c, p, rules.faults, id+2*round)
					taken := h.begin(id, take)
					l := persist(c, p)
					if l == nil {
						return
					}
					taken()

					read := n
					runtime.Gosched() // an invitation to all that are not kept out
					n = read + 1

					disturb(c, p, rules.faults, id+2*round+1)
					released := h.begin(id, release)
					err := l.Unlock(c.ctx)
					released()
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
	if n != want {
		c.Errorf("counted %d of %d", n, want)
	}
	h.judge(c)
	c.nothingLeft()
}

// disturb makes the next exchange of p with one of the nodes fail.
func disturb(c *check, p *Process, faults []Fault, turn int) {
	if faults != nil {
		p.Break(turn%c.kind.Nodes, faults[turn%len(faults)])
	}
}

// persist locks, or returns nil after an error. It is for any goroutine.
func persist(c *check, p *Process) *locker.Lease {
	for {
		l, err := p.Lock(c.ctx, "contested")
		switch {
		case err == nil:
			return l
		case c.kind.SeesRelease || !errors.Is(err, locker.ErrTimeout) || c.ctx.Err() != nil:
			c.Error(err)
			return nil
		}
		time.Sleep(time.Millisecond)
	}
}
