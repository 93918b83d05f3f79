package faults

import (
	"context"
	"fmt"
	"testing"
)

// CLUSTER FAILOVER makes a master wait until its replica has all, and swaps their roles: each master
// in turn, and then back. Nothing is lost, and nobody notices more than a wait.
func TestClusterFailoverByCommand(t *testing.T) {
	eachClient(t, func(t *testing.T, client string) {
		s := stageCluster(t, client, "CLUSTER FAILOVER of each master, and back", "P1: nothing lost; not noticed, but for the wait", setting{logins: true,
			redis: []string{"--cluster-node-timeout", "5000"}}) // an election that fails is repeated after four of these
		masters := s.cluster.Masters(t)
		s.run(func(ctx context.Context) {
			for range 2 {
				for _, master := range s.cluster.Masters(t) {
					s.cluster.Failover(t, s.cluster.ReplicaOf(t, master))
				}
				s.cluster.AwaitReady(t)
				pause(ctx, warmUp())
			}
		})
		s.allAnswered()
		if now := s.cluster.Masters(t); now[0] != masters[0] {
			t.Error("the first master is not one again")
		}
		s.seen = fmt.Sprintf("MOVED %d times", s.refusals("MOVED"))
		happened(t, "a client was sent to the new master", s.refusals("MOVED"), 1)
	})
}
