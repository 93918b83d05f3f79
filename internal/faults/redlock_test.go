package faults

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// Redlock guards the sessions on five servers; the first also has the records. Two of the others are killed, one
// after the other, and the site continues to work. When a third is killed, the site cannot work, and responds
// 503. When the third is back, after a lease, the site works again.
func TestRedlockNodesKilled(t *testing.T) {
	const redlockLease = 10 * time.Second // a node has only a fiftieth of it to reply
	var nodes []*redistest.Server
	s := stage(t, "Redlock: one, two, three of five nodes killed", "two are not needed; with three 503, nothing lost", setting{
		// There are no logins: a session without a lock of its own does not remember its ID from before a login.
		slack: 4*5 + slack, // a process has four connections to each node, but not from the start
		lease: redlockLease, flags: []string{"-lock", "redlock"},
		url: func(s *scene) string {
			for len(nodes) < 5 {
				nodes = append(nodes, redistest.Real(t))
			}
			nodes[0] = s.redis
			var urls []string
			for _, node := range nodes {
				urls = append(urls, node.URL)
			}
			return strings.Join(urls, ",")
		}})
	s.run(func(ctx context.Context) {
		for i, node := range nodes[3:] {
			node.Stop(t)
			s.awaitWrites(fmt.Sprintf("with %d nodes killed", i+1), time.Now())
		}
		third := nodes[2]
		third.Stop(t)
		pause(ctx, 300*time.Millisecond) // requests under way may still be answered
		begun := time.Now()
		pause(ctx, time.Second)
		for i, v := range s.visitors {
			if v.WroteSince(begun) {
				t.Errorf("with three nodes killed, a write of visitor %d was confirmed", i)
			}
		}
		pause(ctx, redlockLease-time.Since(begun)) // so that the node's forgotten locks have expired
		third.Restart(t)
	})
	s.mustHaveLogged("3 of 5 nodes failed")
}
