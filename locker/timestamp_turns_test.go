package locker

import (
	"fmt"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// Contenders take a stale lock and give it back, so that it is free, held or
// stale between any two steps of another. In no order of all their steps do two
// hold it at a time.
func TestTimestampTurns(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	for peers := range 3 {
		t.Run(fmt.Sprintf("%d peers", peers), func(t *testing.T) {
			r := newRace(t, server, peers, 3-peers)
			lost := 0
			runs := explore(func(choose func(n int) int) {
				steps := r.giveBack(r.begin(remains["a peer's lock"]))
				interleave(choose, steps, func() {
					if n := r.holders(); n > 1 {
						t.Fatalf("%d holders", n)
					}
				})
				lost += r.wantFree()
			})
			t.Logf("%d orders, in %d a holder was told too much", runs, lost)
			if peers == 2 {
				r.wantNils()
			}
		})
	}
}

// giveBack adds to the steps of begin that whoever wins gives the lock back.
func (r *race) giveBack(steps []step) []step {
	for i := range steps {
		steps[i] = then(steps[i], func() step {
			switch {
			case i < len(r.peers) && r.peers[i].holds:
				return r.peers[i].del
			case i >= len(r.peers) && r.procs[i-len(r.peers)].holds:
				return r.procs[i-len(r.peers)].release
			}
			return nil
		})
	}
	return steps
}

// wantFree says that the lock is free when all are done. There is one exception.
// A peer has seen the stale lock and hesitates; the lock is taken over, given
// back, and taken by a process; now the peer changes the value, and loses. The
// process cannot tell this from a lock that was deleted, and taken by the peer.
// So it believes that it has lost, and leaves the lock to run out.
func (r *race) wantFree() (lost int) {
	for _, c := range r.procs {
		if c.lost {
			lost++
		}
	}
	if value, _ := r.contents(); (value != "") != (lost > 0) {
		r.t.Errorf("in the end the value is %q; %d were told that they lost it", value, lost)
	}
	return lost
}
