package faults

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// One node of five is killed, and another: the site works on. With a third it cannot,
// and says so. When one is back, after a lease, it works again.
func TestRedlockNodesKilled(t *testing.T) {
	t.Parallel()
	q := stageRedlock(t, "Redlock: one, two, three of five nodes killed", "two are not missed; with three 503, nothing lost", setting{logins: true})
	q.suffer(func(ctx context.Context) {
		for i, node := range q.nodes[3:] {
			node.Stop(t)
			q.works(fmt.Sprintf("with %d nodes killed", i+1))
		}
		third := q.nodes[2]
		third.Stop(t)
		q.rests(ctx, "with three nodes killed")
		pause(ctx, redlockLease) // it has forgotten to whom it said yes
		third.Restart(t)
	})
	q.mustHaveLogged("3 of 5 nodes failed")
	for _, node := range q.nodes[3:] {
		node.Restart(t)
	}
	q.nothingLeftAnywhere()
}

// The same, with nodes that are silent for a while, and remember.
func TestRedlockNodesPaused(t *testing.T) {
	t.Parallel()
	q := stageRedlock(t, "Redlock: two, then three of five nodes paused", "two are not missed; with three 503, nothing lost", setting{logins: true})
	q.suffer(func(ctx context.Context) {
		for _, node := range q.nodes[3:] {
			node.Pause(t)
		}
		q.works("with two nodes paused")
		q.nodes[2].Pause(t)
		q.rests(ctx, "with three nodes paused")
		pause(ctx, redlockLease/2)
		for _, node := range q.nodes[2:] {
			node.Resume(t)
		}
	})
	q.mustHaveLogged("3 of 5 nodes failed")
	q.nothingLeftAnywhere()
}

// One process cannot reach three of the nodes. It takes no lock, and what it had taken
// keeps no other from working for longer than a lease.
func TestRedlockPartition(t *testing.T) {
	t.Parallel()
	q := stageRedlock(t, "Redlock: one process cut off from three of five nodes", "it answers 503, the other goes on, nothing lost", setting{logins: true, wired: true})
	q.suffer(func(ctx context.Context) {
		for _, way := range q.ways[0][2:] {
			way.Cut()
		}
		here, there := q.guest(q.demos[1]), q.demos[0]
		for range 5 {
			here.must("cut off", here.post(there, "/incr"), 503, "")
		}
		here.must("the other process", here.post(q.demos[1], "/incr"), 200, "1")
		q.works("with one process cut off")
		pause(ctx, 500*time.Millisecond)
		for _, way := range q.ways[0][2:] {
			way.Join(t)
		}
	})
	q.nothingLeftAnywhere()
}
