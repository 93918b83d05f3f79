package faults

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
	"github.com/gomodule/redigo/redis"
)

const (
	lossPromise   = "P1: lost is what its replica had not heard; P8: 503 meanwhile, never an empty session, back within cluster-node-timeout + 3 s"
	silentPromise = lossPromise + " + a time-out, which a silent master costs"
)

// A master is killed, and its replica takes over. Sessions elsewhere notice nothing. When the old
// master comes back, with nothing, it is a replica, and nobody takes its word for anything.
func TestClusterMasterKilled(t *testing.T) {
	eachClient(t, func(t *testing.T, client string) {
		s := stageCluster(t, client, "a master killed, and restarted empty", lossPromise, setting{redis: mortal})
		var l *loss
		var guest time.Duration
		s.run(func(context.Context) {
			l = s.lose()
			l.master.Stop(t)
			eventually(t, delivery, "the replica knows", func() bool { return rig.LinkDown(t, l.replica) })
			l.note()
			guest = l.awaitGuest()
			l.master.Restart(t)
			s.cluster.AwaitReady(t)
			if s.cluster.ReplicaOf(t, l.replica) != l.master {
				t.Error("the old master is no replica of the new one")
			}
		})
		l.well(guest, takeover)
	})
}

// A master is cut off from all other nodes, while clients still reach it. It takes writes until it
// notices, and these are lost, like all that a replica has not heard. Then it refuses.
func TestClusterMasterPartitioned(t *testing.T) {
	eachClient(t, func(t *testing.T, client string) {
		s := stageCluster(t, client, "a master cut off from the other nodes, not from clients", silentPromise, setting{redis: mortal})
		var l *loss
		var guest time.Duration
		s.run(func(ctx context.Context) {
			l = s.lose()
			s.cluster.Partition(t, l.master)
			l.guest.must("a write to the old master", l.guest.post(s.demos[0], "/incr"), 200, fmt.Sprint(l.count+1))
			eventually(t, takeover, "the old master refuses", func() bool {
				info, err := redis.String(l.master.Do(t, "CLUSTER", "INFO"), nil)
				return err == nil && strings.Contains(info, "cluster_state:fail")
			})
			l.note()
			s.cluster.AwaitMaster(t, l.replica)
			guest = l.awaitGuest()
			if l.count != 4 {
				t.Errorf("the guest's number is %d: what the old master alone knew is not lost", l.count)
			}
			pause(ctx, warmUp())
			s.cluster.Heal(t)
			s.cluster.AwaitReady(t)
		})
		l.well(guest, takeover+timeout)
	})
}
