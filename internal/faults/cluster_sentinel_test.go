package faults

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
	"github.com/a2139e8d/latchkey/internal/redistest"
)

// Three sentinels watch a master and its replica, and the processes ask them. The master is killed. Later it
// comes back empty, and is a master until the sentinels demote it. No request uses it then.
func TestSentinelThroughClients(t *testing.T) {
	eachClient(t, func(t *testing.T, client string) {
		master := redistest.Real(t, "--repl-diskless-sync", "no", "--repl-ping-replica-period", "1")
		replica := rig.Replica(t, master.Addr)
		sentinels := rig.NewSentinels(t, master, 1)
		s := &scene{T: t, setting: setting{slack: goredisPool}.complete(), redis: master}
		t.Cleanup(func() {
			s.row("Sentinel, "+client+": the master killed, and restarted empty", "P1: only what the replica had not received is lost; recovers by itself")
		})
		for range s.setting.demos {
			s.open(clusterApp.Start(t, "-client", client, "-redis", strings.Join(sentinels.Addrs, ","),
				"-master", redistest.MasterName, "-lease", lease.String(), "-lock-wait", lockWait.String()))
		}
		var took time.Duration
		s.run(func(ctx context.Context) {
			killed := time.Now()
			master.Stop(t)
			eventually(t, delivery, "the replica knows", func() bool { return rig.LinkDown(t, replica) })
			pause(ctx, time.Until(killed.Add(delivery)))
			s.setback = setback(t, killed, replica)
			s.redis = replica
			sentinels.Watch(t) // not before the test knows what the replica has
			sentinels.AwaitMaster(t, master.Addr)
			took = time.Since(killed)
			s.awaitWrites("after the failover", time.Now())

			sentinels.Hurry(t, replica.Addr)
			master.Restart(t)
			eventually(t, 30*time.Second, "the old master follows the new one", func() bool { return rig.Role(master) == "slave" })
			pause(ctx, warmUp())
		})
		s.seen = fmt.Sprintf("Sentinel took %v, %d answered writes lost", took.Round(10*time.Millisecond), s.lost)
	})
}
