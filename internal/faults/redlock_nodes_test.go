package faults

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// One node of five is killed, and another: the site continues to work. Without a third it
// cannot, and answers 503. When one is back, after a lease, it works again.
func TestRedlockNodesKilled(t *testing.T) {
	t.Parallel()
	q := stageRedlock(t, "Redlock: one, two, three of five nodes killed", "two are not missed; with three 503, nothing lost", setting{logins: true})
	q.run(func(ctx context.Context) {
		for i, node := range q.nodes[3:] {
			node.Stop(t)
			q.mustWork(fmt.Sprintf("with %d nodes killed", i+1))
		}
		third := q.nodes[2]
		third.Stop(t)
		q.mustAnswerNone(ctx, "with three nodes killed")
		pause(ctx, redlockLease) // it has forgotten its locks
		third.Restart(t)
	})
	q.mustHaveLogged("3 of 5 nodes failed")
	for _, node := range q.nodes[3:] {
		node.Restart(t)
	}
	q.nothingLeftAnywhere()
}

// The same, with nodes that are silent for a while, and forget nothing.
func TestRedlockNodesPaused(t *testing.T) {
	t.Parallel()
	q := stageRedlock(t, "Redlock: two, then three of five nodes paused", "two are not missed; with three 503, nothing lost", setting{logins: true})
	q.run(func(ctx context.Context) {
		for _, node := range q.nodes[3:] {
			node.Pause(t)
		}
		q.mustWork("with two nodes paused")
		q.nodes[2].Pause(t)
		q.mustAnswerNone(ctx, "with three nodes paused")
		pause(ctx, redlockLease/2)
		for _, node := range q.nodes[2:] {
			node.Resume(t)
		}
	})
	q.mustHaveLogged("3 of 5 nodes failed")
	q.nothingLeftAnywhere()
}

// One process cannot reach three of the nodes. It takes no lock, and those that it had
// block no other process for longer than a lease.
func TestRedlockPartition(t *testing.T) {
	t.Parallel()
	q := stageRedlock(t, "Redlock: one process cut off from three of five nodes", "it answers 503, the other goes on, nothing lost", setting{logins: true, wired: true})
	q.run(func(ctx context.Context) {
		for _, way := range q.ways[0][2:] {
			way.Cut()
		}
		here, there := q.guest(q.demos[1]), q.demos[0]
		for range 5 {
			here.must("cut off", here.post(there, "/incr"), 503, "")
		}
		here.must("the other process", here.post(q.demos[1], "/incr"), 200, "1")
		q.mustWork("with one process cut off")
		pause(ctx, 500*time.Millisecond)
		for _, way := range q.ways[0][2:] {
			way.Join(t)
		}
	})
	q.nothingLeftAnywhere()
}
