package faults

import (
	"context"
	"flag"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/internal/subprocess"
)

// All slots move to another master, many at the same time, under 100 writers. Over go-redis only those of
// one master move, and with -short only some of these. A holder is refused if its commit must wait for longer
// than its lease: one request in ten thousand may be. A commit waits for as long as the nodes need for 256
// slots, which depends on the machine. So the lease is long.
func TestClusterReshardOfAllSlots(t *testing.T) {
	eachClient(t, func(t *testing.T, client string) {
		givers := 1
		if client == "rueidis" && !testing.Short() {
			givers = 3
		}
		s := stageCluster(t, client, moving(givers)+", under 100 writers", "P1, P15: nothing lost, one in 10,000 without a response",
			setting{demos: 3, visitors: 100, clients: 1, logins: true, lease: 3 * patient, exchange: 3 * patient})
		s.run(func(context.Context) {
			begun := time.Now()
			s.moveAll(givers)
			s.seen = fmt.Sprintf("took %v, ", time.Since(begun).Round(100*time.Millisecond))
		})
		s.redirected()
		sum := s.summary()
		most := (sum.Answered + 9_999) / 10_000
		if testing.Short() { // beside other tests, which slow the nodes down
			most *= 5
		}
		if sum.Silent > most {
			s.Errorf("%d of %d requests were not answered", sum.Silent, sum.Answered)
		}
	})
}

// Slots move under 100 writers, while two programs keep the processors busy. The slots are those of one master.
// If the test is run by its name and without -short, all slots move, which takes minutes. However slow that is,
// no request takes longer than LockWait plus one and a quarter Timeout. The test allows one more second for HTTP,
// and adds the delays of the machine.
//
// How many requests are refused depends on the machine. The nodes move 256 slots together, and each of these is
// moving for as long as that takes. A commit meanwhile has a Timeout, and a take waits.
func TestClusterReshardBesideBusyLoops(t *testing.T) {
	givers := 1
	if flag.Lookup("test.run").Value.String() != "" && !testing.Short() {
		givers = 3
	}
	for _, client := range []string{"rueidis", "goredis"} {
		t.Run(client, func(t *testing.T) {
			s := stageCluster(t, client, moving(givers)+", under 100 writers, beside two busy loops",
				"P5: 503 after LockWait, and a time-out and a quarter", setting{
					demos: 3, visitors: 100, clients: 1, logins: true, lease: patient,
					longest: lockWait + timeout*5/4 + time.Second,
				})
			for range 2 {
				busyLoop(t)
			}
			s.run(func(context.Context) {
				begun := time.Now()
				s.moveAll(givers)
				s.seen = fmt.Sprintf("took %v, ", time.Since(begun).Round(100*time.Millisecond))
			})
			s.redirected()
		})
	}
}

// busyLoop keeps a core busy until the test ends.
func busyLoop(t *testing.T) {
	t.Helper()
	p, err := subprocess.Start(exec.Command("sh", "-c", "while :; do :; done"))
	if err != nil {
		t.Fatal(err)
	}
	p.EndWith(t)
}

// fewSlots is how many of a master's slots move with -short.
const fewSlots = 1024

// moving describes what moveAll does.
func moving(givers int) string {
	switch {
	case testing.Short():
		return fmt.Sprintf("%d slots move", givers*fewSlots)
	case givers == 1:
		return "a third of the slots moves"
	default:
		return "all slots move"
	}
}

// moveAll moves all slots of some masters, each to the next master.
func (s *scene) moveAll(givers int) {
	s.Helper()
	masters, shares := s.cluster.Masters(s.T), [][]int(nil)
	for _, master := range masters {
		slots := s.cluster.SlotsOf(s.T, master)
		if testing.Short() {
			slots = slots[:fewSlots]
		}
		shares = append(shares, slots)
	}
	for i, master := range masters[:givers] {
		s.cluster.MoveAll(s.T, shares[i], master, masters[(i+1)%len(masters)])
	}
}

// A node is added, and gets some slots with the visitors on them. Then it is removed again. The processes learn
// of the node, and forget it.
func TestClusterGrowsAndShrinks(t *testing.T) {
	eachClient(t, func(t *testing.T, client string) {
		s := stageCluster(t, client, "a node added, with a third of the slots, and removed", "P1, P15: nothing lost, not noticed except for the wait",
			setting{logins: true, lease: patient, exchange: patient})
		s.run(func(ctx context.Context) {
			added, old := s.cluster.Add(t), s.cluster.Nodes[0]
			s.cluster.MoveAll(t, s.cluster.SlotsOf(t, old), old, added)
			g := s.guestIn(s.cluster.SlotsOf(t, added))
			pause(ctx, warmUp())
			s.cluster.Remove(t, added, old)
			pause(ctx, 3*time.Second) // operators should wait, too: rueidis asks for the slots at most once a second
			added.Stop(t)
			g.must("the guest of the node that is gone", g.post(s.demos[1], "/incr"), 200, "2")
		})
		s.redirected()
		s.allAnswered()
	})
}

// guestIn returns a guest whose session is in one of the given slots, and has the number 1.
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

// A master and its replica are down, in a cluster that goes on without them (cluster-require-full-coverage no).
// Sessions elsewhere are not affected. Requests to sessions on these nodes are refused, and never see an empty
// session. When the nodes are back, so are the sessions.
func TestClusterThirdDown(t *testing.T) {
	eachClient(t, func(t *testing.T, client string) {
		s := stageCluster(t, client, "a master and its replica killed", "P8: its sessions are 503, never empty; other sessions are not affected",
			setting{redis: append([]string{"--cluster-require-full-coverage", "no", "--appendonly", "yes", "--appendfsync", "always"}, mortal...)})
		third := s.populate(12)
		lost := []*redistest.Server{third.master, s.cluster.ReplicaOf(t, third.master)}
		s.setting.visitors = 0
		s.run(func(ctx context.Context) {
			for _, node := range lost {
				node.Stop(t)
			}
			third.use(ctx, unlessShort(8*time.Second, 5*time.Second))
			for _, node := range lost {
				node.Restart(t)
			}
			s.cluster.AwaitReady(t)
			third.mustBeBack()
		})
		s.seen = fmt.Sprintf("%d writes elsewhere, the longest took %v; %d refused there", third.answered, third.slowest.Round(time.Millisecond), third.refused)
	})
}

// A third has the sessions of a cluster, in two groups.
type third struct {
	*scene
	master      *redistest.Server
	here, there []*guest // on that master, and elsewhere
	counts      map[*guest]int
	unsure      map[*guest]bool // the count may be higher

	mu                sync.Mutex // guards all below, and counts
	answered, refused int
	slowest           time.Duration // of the requests elsewhere
}

// populate makes guests, each of which writes to each process once.
func (s *scene) populate(guests int) *third {
	s.Helper()
	d := &third{scene: s, counts: make(map[*guest]int), unsure: make(map[*guest]bool)}
	for range guests {
		g := s.guest(s.demos[0])
		at := s.at(rig.RecordKey(s.T, g.cookie))
		if d.master == nil {
			d.master = at
		}
		if at == d.master {
			d.here = append(d.here, g)
		} else {
			d.there = append(d.there, g)
		}
		for turn := range s.demos { // so that all have connections
			d.write(g, turn)
		}
	}
	return d
}

// use makes all guests write at once, for a while.
func (d *third) use(ctx context.Context, lasts time.Duration) {
	ctx, stop := context.WithTimeout(ctx, lasts)
	defer stop()
	var all sync.WaitGroup
	for _, g := range d.here {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				got := g.post(d.demos[n%2], "/incr")
				if got.status != 503 || got.took > d.longest+lateSince(d.begun) {
					g.Errorf("a session on a node that is down: %d %q after %v", got.status, got.text, got.took)
				}
				got = g.get(d.demos[n%2], "/count")
				g.must("a read of a session that is away", got, 503, "")
				d.mu.Lock()
				d.refused++
				d.mu.Unlock()
			}
		})
	}
	for _, g := range d.there {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				d.write(g, n)
				pause(ctx, 10*time.Millisecond)
			}
		})
	}
	all.Wait()
}

// write adds one to the number of a session on a node that is up.
func (d *third) write(g *guest, turn int) {
	d.mu.Lock()
	want := d.counts[g] + 1
	d.mu.Unlock()
	begun := time.Now()
	got := g.post(d.demos[turn%2], "/incr")
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case got.status == 503 && stalledSince(begun.Add(-lease)): // the write may have been done
		d.unsure[g] = true
	case !d.unsure[g]:
		g.must("a write elsewhere", got, 200, fmt.Sprint(want))
	}
	if got.status == 200 { // otherwise one error would cause many
		delete(d.unsure, g)
		d.counts[g], _ = strconv.Atoi(got.text)
	}
	d.answered++
	d.slowest = max(d.slowest, got.took)
}

// mustBeBack asserts that all sessions are there. A write that was refused may have been done.
func (d *third) mustBeBack() {
	d.Helper()
	for _, g := range d.here {
		var got reply
		eventually(d.T, d.recovery, "a session is back", func() bool { got = g.get(d.demos[1], "/count"); return got.status == 200 })
		var n int
		if _, err := fmt.Sscan(got.text, &n); err != nil || n < d.counts[g] {
			g.Errorf("a session whose node was down has %q, after %d writes", got.text, d.counts[g])
		}
		eventually(d.T, d.recovery, "it can be written to", func() bool { return g.post(d.demos[0], "/incr").status == 200 })
	}
	for _, g := range d.there {
		d.write(g, 0)
	}
}
