package faults

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
)

// The master is killed, the sentinels promote the replica, and the address follows. What
// the replica had not received at that moment is lost, and nothing else.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	f := stageFailover(t, "master killed, Sentinel promotes the replica", "P1: lost is what was not replicated; back by itself", true, setting{})
	sentinels := rig.NewSentinels(t, f.redis, 1)
	var took time.Duration
	f.run(func(context.Context) {
		sentinels.Watch(t)
		f.kill()
		if now := sentinels.AwaitMaster(t, f.redis.Addr); now != f.replica.Addr {
			t.Errorf("the sentinels made a master of %s", now)
		}
		took = time.Since(f.killed)
		f.follow()
	})
	f.seen = fmt.Sprintf("Sentinel took %v, %d answered writes lost", took.Round(10*time.Millisecond), f.lost)
}

// SENTINEL FAILOVER promotes the replica while the old master still takes writes, until
// Sentinel demotes it. With min-replicas-to-write 1 it stops when its only replica leaves,
// so only what was on its way at that moment can be lost.
func TestSentinelHandover(t *testing.T) {
	t.Parallel()
	f := stageFailover(t, "SENTINEL FAILOVER with min-replicas-to-write 1", "P1: lost is what was not replicated; back by itself", true, setting{})
	sentinels := rig.NewSentinels(t, f.redis, 1)
	f.redis.Do(t, "CONFIG", "SET", "min-replicas-to-write", 1)
	f.run(func(context.Context) {
		f.killed = time.Now()
		sentinels.Failover(t)
		sentinels.AwaitMaster(t, f.redis.Addr)
		eventually(t, 10*time.Second, "the old master refuses", func() bool {
			return f.logged("NOREPLICAS")+f.logged("READONLY") > 0
		})
		f.follow()
		for _, a := range f.addresses {
			a.Drop() // Sentinel does so, too, but only after it has demoted the old master
		}
	})
	f.seen = fmt.Sprintf("%d answered writes lost", f.lost)
}
