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
	t.Parallel()
	f := stageFailover(t, "master killed, replica 200 ms behind", "P1: lost is what the replica had not heard, nothing else", false, setting{})
	f.run(func(ctx context.Context) {
		f.lag()
		pause(ctx, 200*time.Millisecond)
		f.kill()
		f.promote()
		f.follow()
	})
	f.seen = fmt.Sprintf("%d answered writes lost", f.lost)
	if f.lost == 0 {
		t.Error("nothing was lost, so there was no lag")
	}
}

// With min-replicas-to-write, as store/REDIS.md advises, the master refuses writes when it has
// not heard from its replica for a second. So no more than that, and the inaccuracy of
// Redis's measuring, can be lost.
func TestFailoverWithMinReplicas(t *testing.T) {
	t.Parallel()
	const most = 1 // second
	f := stageFailover(t, "master cut off from its replica for long, then killed", "P1: min-replicas-max-lag 1 bounds the loss", false,
		setting{apart: true, redis: []string{"--min-replicas-to-write", "0", "--min-replicas-max-lag", fmt.Sprint(most)}})
	f.redis.Do(t, "CONFIG", "SET", "min-replicas-to-write", 1)
	var bound time.Duration
	f.run(func(ctx context.Context) {
		f.lag()
		begun := time.Now()
		eventually(t, 10*time.Second, "the master refuses", func() bool {
			latest := time.Now()
			pause(ctx, 100*time.Millisecond)
			for _, v := range f.visitors {
				if v.WroteSince(latest) {
					return false
				}
			}
			return f.logged("NOREPLICAS") > 0
		})
		bound = time.Since(begun)
		pause(ctx, 300*time.Millisecond)
		f.kill()
		f.promote()
		f.follow()
	})
	f.seen = fmt.Sprintf("refused after %v, %d answered writes lost", bound.Round(10*time.Millisecond), f.lost)
	// Redis checks once a second, and counts in whole seconds.
	if bound > (most+2)*time.Second+2*time.Second {
		t.Errorf("the master took writes for %v without a replica", bound)
	}
	if f.lost == 0 {
		t.Error("nothing was lost, so there was no lag")
	}
}

// FAILOVER makes the master pause, let its replica catch up, and swap roles with it.
// Nothing is lost. The connections stay open, to what is a replica now, and are given up
// at the first READONLY.
func TestFailoverByCommand(t *testing.T) {
	t.Parallel()
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
	if n == 0 {
		t.Error("no request reached the old master as a replica")
	}
}
