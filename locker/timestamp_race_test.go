package locker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// explore calls run once for every series of choices that run can make. choose returns one of 0 to n-1.
func explore(run func(choose func(n int) int)) {
	var path, width []int // what was chosen, out of how many
	for {
		depth := 0
		run(func(n int) int {
			if depth == len(path) {
				path, width = append(path, 0), append(width, n)
			}
			if width[depth] != n {
				panic("the same choices led to something else than before")
			}
			depth++
			return path[depth-1]
		})
		// Go on with the last choice that has an alternative.
		last := len(path) - 1
		for last >= 0 && path[last]+1 == width[last] {
			last--
		}
		if last < 0 {
			return
		}
		path, width = path[:last+1], width[:last+1]
		path[last]++
	}
}

// interleave lets choose decide which contender makes the next step, until all are done. After each step it calls
// check.
func interleave(choose func(n int) int, steps []step, check func()) {
	for len(steps) > 0 {
		i := choose(len(steps))
		steps[i] = steps[i]()
		if steps[i] == nil {
			steps = slices.Delete(steps, i, i+1)
		}
		check()
	}
}

// A race is a number of contenders for one lock, each in steps.
type race struct {
	t      *testing.T
	server *redistest.Server
	peers  []*peer
	procs  []*contender
}

func newRace(t *testing.T, server *redistest.Server, peers, procs int) *race {
	r := &race{t: t, server: server}
	for i := range peers {
		r.peers = append(r.peers, newPeer(t, server, patient.Lease+time.Duration(i+1)*s)) // so that no two write the same value
	}
	for range procs {
		r.procs = append(r.procs, newContender(t, server))
	}
	return r
}

// begin makes all contenders new, and returns their first steps.
func (r *race) begin(remain [2]string) []step {
	begin(r.t, r.server, remain)
	var steps []step
	for _, p := range r.peers {
		p.holds = false
		steps = append(steps, p.setnx)
	}
	for _, c := range r.procs {
		c.holds, c.lost, c.token = false, false, rand.Text()
		steps = append(steps, c.take)
	}
	return steps
}

func (r *race) holders() (n int) {
	for _, p := range r.peers {
		if p.holds {
			n++
		}
	}
	for _, c := range r.procs {
		if c.holds {
			n++
		}
	}
	return n
}

// Three contenders find a lock whose holder died. In each order of their steps, exactly one of them wins.
func TestTimestampRace(t *testing.T) {
	t.Parallel()
	for peers := range 4 {
		for name, remain := range remains {
			if peers == 3 && remain[1] != "" {
				continue // peers do not read notes
			}
			t.Run(fmt.Sprintf("%d peers, %s", peers, name), theseYears(func(t *testing.T, server *redistest.Server) {
				r := newRace(t, server, peers, 3-peers)
				changed := 0
				explore(func(choose func(n int) int) {
					interleave(choose, r.begin(remain), func() {})
					if r.judge() {
						changed++
					}
				})
				if peers > 0 && peers < 3 && name != "nothing" && changed == 0 {
					t.Error("no loser has changed the value of a process, so this test shows nothing")
				}
			}))
		}
	}
}

// judge checks that there is one winner, and that each process knows whether it is the winner. It returns whether
// the winner is a process whose value a loser has changed. The winner's Extend repairs that.
func (r *race) judge() (changed bool) {
	r.t.Helper()
	if n := r.holders(); n != 1 {
		r.t.Errorf("%d winners", n)
	}
	for _, c := range r.procs {
		if !c.holds {
			r.wantOthers(c)
		}
	}
	for _, c := range r.procs {
		if !c.holds {
			continue
		}
		value, note := contents(r.t, r.server)
		changed = !strings.HasPrefix(note, value+" ")
		if err := c.Extend(context.Background(), "k", c.token, patient.Lease); err != nil {
			r.t.Errorf("the winner's Extend: %v", err)
		}
		wantUntil(r.t, r.server, "extended", time.Now().Add(patient.Lease))
		c.release()
		if value, note := contents(r.t, r.server); c.lost || value != "" || note != "" {
			r.t.Errorf("the winner's Release: lost %v, left %q and %q", c.lost, value, note)
		}
	}
	return changed
}

// wantOthers checks that c finds the lock to be another's, and leaves it alone.
func (r *race) wantOthers(c *contender) {
	r.t.Helper()
	value, _ := contents(r.t, r.server)
	if err := c.Extend(context.Background(), "k", c.token, patient.Lease); !errors.Is(err, ErrLost) {
		r.t.Errorf("Extend: %v, want %v", err, ErrLost)
	}
	if c.release(); !c.lost {
		r.t.Error("Release found nothing wrong")
	}
	if now, _ := contents(r.t, r.server); now != value {
		r.t.Errorf("another's value %q became %q", value, now)
	}
}

// wantNils checks that the peers have met all cases that they must be able to handle.
func (r *race) wantNils() {
	for _, p := range r.peers {
		if p.nilGet == 0 || p.nilGetset == 0 {
			r.t.Errorf("no value: %d times in GET, %d times in GETSET", p.nilGet, p.nilGetset)
		}
	}
}

// Contenders take a stale lock and release it. So it is free, held or stale between any two steps of another. In
// no order of all their steps do two hold it at the same time.
func TestTimestampTurns(t *testing.T) {
	t.Parallel()
	for peers := range 3 {
		t.Run(fmt.Sprintf("%d peers", peers), theseYears(func(t *testing.T, server *redistest.Server) {
			r := newRace(t, server, peers, 3-peers)
			explore(func(choose func(n int) int) {
				interleave(choose, r.giveBack(r.begin(remains["a peer's lock"])), func() {
					if n := r.holders(); n > 1 {
						t.Fatalf("%d holders", n)
					}
				})
				r.wantFree()
			})
			if peers == 2 {
				r.wantNils()
			}
		}))
	}
}

// giveBack adds to the steps of begin that the winner releases the lock.
func (r *race) giveBack(steps []step) []step {
	for i, first := range steps {
		var next step
		do := first
		next = func() step {
			do = do()
			if do != nil {
				return next
			}
			switch {
			case i < len(r.peers) && r.peers[i].holds:
				return r.peers[i].release
			case i >= len(r.peers) && r.procs[i-len(r.peers)].holds:
				return r.procs[i-len(r.peers)].release
			}
			return nil
		}
		steps[i] = next
	}
	return steps
}

// wantFree checks that the lock is free when all are done. There is one exception. A peer has seen the stale
// lock, and hesitates. The lock is taken over, released, and taken by a process. Then the peer changes the value,
// and loses. The process cannot distinguish this from a lock that was deleted, and taken by the peer. So it
// believes that it has lost the lock, and leaves the lock to expire.
func (r *race) wantFree() {
	lost := slices.ContainsFunc(r.procs, func(c *contender) bool { return c.lost })
	if value, _ := contents(r.t, r.server); (value != "") != lost {
		r.t.Errorf("in the end the value is %q; a process was told that it lost the lock: %v", value, lost)
	}
}
