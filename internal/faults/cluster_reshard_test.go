package faults

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
)

// calm are flags for processes that must not be refused anything, though the machine is busy: none
// of them dies here, nor does a node, so that what is waited for may take long.
var calm = []string{"-lease", "10s", "-timeout", "10s"}

// All slots move to another master, many at the same time, under 100 writers. Over go-redis, and with
// -short, it is those of one master. A holder whose commit must wait for longer than its lease is
// refused: one request in ten thousand may be.
func TestClusterReshardOfAllSlots(t *testing.T) {
	eachClient(t, func(t *testing.T, client string) {
		givers, what := 1, "a third of the slots moves"
		if client == "rueidis" && !testing.Short() {
			givers, what = 3, "all slots move"
		}
		s := stageCluster(t, client, what+", under 100 writers", "P1, P15: nothing lost, one in 10,000 without an answer",
			setting{demos: 3, visitors: 100, clients: 1, logins: true, flags: calm, exchange: 10 * time.Second})
		s.run(func(context.Context) {
			begun := time.Now()
			masters, shares := s.cluster.Masters(t), [][]int(nil)
			for _, master := range masters {
				shares = append(shares, s.cluster.SlotsOf(t, master))
			}
			for i, master := range masters[:givers] {
				s.cluster.MoveAll(t, shares[i], master, masters[(i+1)%len(masters)])
			}
			s.seen = fmt.Sprintf("took %v, ", time.Since(begun).Round(100*time.Millisecond))
		})
		s.redirected()
		if sum := s.summary(); sum.Silent > sum.Answered/10_000 {
			s.Errorf("%d of %d requests were not answered", sum.Silent, sum.Answered)
		}
	})
}

// A node is added, gets some slots, and visitors with them; then it is removed again. The processes
// get to know it, and forget it.
func TestClusterGrowsAndShrinks(t *testing.T) {
	eachClient(t, func(t *testing.T, client string) {
		s := stageCluster(t, client, "a node added, with a third of the slots, and removed", "P1, P15: nothing lost, not noticed, but for the wait",
			setting{logins: true, flags: calm, exchange: 10 * time.Second})
		s.run(func(ctx context.Context) {
			added, old := s.cluster.Add(t), s.cluster.Nodes[0]
			s.cluster.MoveAll(t, s.cluster.SlotsOf(t, old), old, added)
			g := s.guestIn(s.cluster.SlotsOf(t, added))
			pause(ctx, warmUp())
			s.cluster.Remove(t, added, old)
			pause(ctx, 3*time.Second) // as operators should: rueidis asks at most once a second who has the slots
			added.Stop(t)
			g.must("the guest of the node that is gone", g.post(s.demos[1], "/incr"), 200, "2")
		})
		s.redirected()
		s.allAnswered()
	})
}

// guestIn returns a guest whose session is in one of some slots, and has the number 1.
func (s *scene) guestIn(slots []int) *guest {
	s.Helper()
	for range 2000 {
		g := s.guest(s.demos[0])
		if slices.Contains(slots, s.cluster.Slot(s.T, rig.RecordKey(s.T, g.cookie))) {
			g.must("the guest's first write", g.post(s.demos[0], "/incr"), 200, "1")
			return g
		}
	}
	s.Fatalf("no session is in %d slots from %d on", len(slots), slots[0])
	return nil
}
