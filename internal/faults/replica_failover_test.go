package faults

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
)

// The replica receives nothing for a while, the master dies, and the replica takes its
// place. What it had not received is lost. All else is in order: each record is a version
// that existed, and what is written from now on builds on it.
func TestFailoverToLaggingReplica(t *testing.T) {
	f := stageFailover(t, "master killed, replica 200 ms behind", "P1: lost is what the replica had not heard, nothing else", false, setting{})
	f.run(func(ctx context.Context) {
		f.lag()
		pause(ctx, 200*time.Millisecond)
		f.kill()
		f.promote()
		f.follow()
	})
	f.seen = fmt.Sprintf("%d answered writes lost", f.lost)
	happened(t, "a write was lost", f.lost, 1)
}

// FAILOVER makes the master pause, let its replica catch up, and swap roles with it.
// Nothing is lost. The connections stay open, to what is a replica now, and are given up
// at the first READONLY.
func TestFailoverByCommand(t *testing.T) {
	f := stageFailover(t, "FAILOVER, the address follows 200 ms later", "P1: nothing lost", true, setting{logins: true})
	old := f.redis
	f.run(func(ctx context.Context) {
		old.Do(t, "FAILOVER")
		eventually(t, 10*time.Second, "the roles are swapped", func() bool {
			return rig.Role(old) == "slave" && rig.Role(f.replica) == "master"
		})
		pause(ctx, 200*time.Millisecond)
		f.redis = f.replica
		f.lead(f.replica)
	})
	n := f.logged("READONLY")
	f.seen = fmt.Sprintf("READONLY in %d log lines", n)
	happened(t, "a request has reached the old master as a replica", n, 1)
}
