package faults

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
)

// A network splits. The replica becomes a master on its side, while the old master still is one on the other
// side, with a demo on each. Writes that the old side confirms are lost when the network is whole again. With
// min-replicas-to-write 1 the old side soon stops accepting writes. The sides never mix: each continues from its
// own data.
func TestTwoMasters(t *testing.T) {
	const most = 1 // second
	// On a busy machine replicas are silent for longer than that by themselves. They may be, until the old side has
	// written after the split.
	const generous = "3600"
	f := stageFailover(t, "the network splits, with a master on each side", "P1: min-replicas-max-lag 1 bounds what the old master's side loses", false,
		setting{redis: []string{"--min-replicas-max-lag", generous}, visitors: 1, lease: patient})
	f.redis.Do(t, "CONFIG", "SET", "min-replicas-to-write", 1)
	old := f.redis
	// If a replica is promoted, the old master notices that it has left. A second replica only falls silent, as
	// both would if a network split.
	cutOff := rig.Replica(t, old.Addr)
	here, there := f.demos[0], f.demos[1]
	g := f.guest(here)
	n := 0
	for range 10 {
		n++
		g.must("before the split", g.post(here, "/incr"), 200, strconv.Itoa(n))
	}
	heard(t, f.redis, f.replica)
	heard(t, f.redis, cutOff)

	f.lag()
	cutOff.Pause(t)
	f.promote()
	f.addresses[1].Lead(f.replica.Addr)
	f.addresses[1].Drop()
	ours, theirs := n, n
	both := func(old reply) {
		t.Helper()
		ours++
		g.must("on the old side", old, 200, strconv.Itoa(ours))
		theirs++
		g.must("on the new side", g.post(there, "/incr"), 200, strconv.Itoa(theirs))
	}
	both(g.post(here, "/incr"))
	old.Do(t, "CONFIG", "SET", "min-replicas-max-lag", most)
	limited := time.Now()
	var bound time.Duration
	eventually(t, 15*time.Second, "the old master refuses", func() bool {
		got := g.post(here, "/incr")
		if got.status == 200 {
			both(got)
			return false
		}
		bound = within(t, "the old master's refusal", limited, (most+9)*time.Second) // Redis looks once a second
		g.must("on the old side", got, 503, "")
		return true
	})
	for range 10 { // stays refused, also for reads
		g.must("on the old side", g.post(here, "/incr"), 503, "")
		g.must("on the old side", g.get(here, "/count"), 503, "")
		theirs++
		g.must("on the new side", g.post(there, "/incr"), 200, strconv.Itoa(theirs))
	}
	f.mustHaveLogged("NOREPLICAS")

	// The network is whole again. The connections to the old master are still open.
	healed := time.Now()
	rig.Follow(t, old, f.replica)
	f.addresses[0].Lead(f.replica.Addr)
	eventually(t, lockWait, "the old side writes again", func() bool { return g.post(here, "/incr").status == 200 })
	f.recovered = time.Since(healed)
	g.must("after all", g.get(here, "/count"), 200, strconv.Itoa(theirs+1))
	g.must("after all", g.get(there, "/count"), 200, strconv.Itoa(theirs+1))
	f.seen = fmt.Sprintf("the old side refused after %v, and lost %d answered writes", bound.Round(10*time.Millisecond), ours-n)
	f.redis = f.replica
	f.nothingLeft()
}

// A failover loses the lock of a holder, and another request acquires the session. The holder's save is refused,
// so the two do not overwrite each other. A lock that was replicated is still valid.
func TestHolderAcrossFailover(t *testing.T) {
	for name, lost := range map[string]bool{"lock replicated": false, "lock lost, and taken by another": true} {
		t.Run(name, func(t *testing.T) {
			f := stageFailover(t, "failover under a holder, "+name, "P3: no stale write", false,
				setting{lease: 3 * patient, flags: []string{"-work", "4s", "-lock-wait", "20s"}}) // it saves before it renews
			g := f.guest(f.demos[0])
			heard(t, f.redis, f.replica)
			if lost {
				f.lag()
			}
			h := f.holdAs(g, f.demos[0], "first")
			if !lost {
				heard(t, f.redis, f.replica)
			}
			f.kill()
			f.promote()
			f.follow()
			if known := f.replica.Exists(t, h.lock); known == lost {
				t.Fatalf("the new master has the lock: %t", known)
			}

			h.must("the save of the second holder", h.set(f.demos[1], "second"), 200, "ok")
			if lost {
				h.must("the save of the first holder", <-h.replies, 503, "")
				g.mustHave(f.demos[0], "second") // the replica has nothing of the first
			} else {
				h.must("the save of the first holder", <-h.replies, 200, "ok")
				h.mustHave(f.demos[0], "first", "second")
			}
			f.nothingLeft()
		})
	}
}
