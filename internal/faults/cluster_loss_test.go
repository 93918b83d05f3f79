package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
	"github.com/gomodule/redigo/redis"
)

const (
	lossPromise   = "P1: only what its replica had not received is lost; P8: 503 meanwhile, never an empty session, recovered within cluster-node-timeout + 3 s"
	silentPromise = lossPromise + " + a timeout, which a silent master costs"
)

// A master is killed, and its replica takes over. Sessions elsewhere are not affected. When the old
// master comes back, empty, it is a replica, and no process believes its data.
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

// A master is cut off from all other nodes, while clients still reach it. It accepts writes until it notices
// that, and then refuses. Its writes are lost, like all writes that the replica has not received.
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
				t.Errorf("the guest's number is %d: a write that only the old master had is not lost", l.count)
			}
			pause(ctx, warmUp())
			s.cluster.Heal(t)
			s.cluster.AwaitReady(t)
		})
		l.well(guest, takeover+timeout)
	})
}

// CLUSTER FAILOVER makes a master wait until its replica has all data, and swaps their roles. That is done with
// each master in turn, and then back. Nothing is lost, and requests only have to wait.
func TestClusterFailoverByCommand(t *testing.T) {
	eachClient(t, func(t *testing.T, client string) {
		s := stageCluster(t, client, "CLUSTER FAILOVER of each master, and back", "P1: nothing lost; not noticed except for the wait", setting{logins: true, lease: patient, exchange: patient,
			redis: []string{"--cluster-node-timeout", "5000"}}) // an election that fails is repeated after four of these timeouts
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
		s.redirected()
	})
}

// The node of a session dies after the commit of its holder was sent, and before the reply. The holder's client
// learns the truth, or nothing: if the response says that the write was saved, the new master has it. The next
// request gets the session when the lease has expired, or earlier.
func TestClusterNodeOfTheHolderDies(t *testing.T) {
	eachClient(t, func(t *testing.T, client string) {
		const work = time.Second
		s := stageCluster(t, client, "the holder's node dies between the commit and its reply",
			"P1, P3, P7: answered and saved, or a 503; the next request is served within the lease", setting{demos: 1})
		holder := s.startApp(client, "-work", work.String())
		var statuses []int
		var longest time.Duration
		for range unlessShort(4, 2) {
			g := s.guest(s.demos[0])
			g.mustSet(s.demos[0], "before")
			record := rig.RecordKey(t, g.cookie)
			master := s.at(record)
			replica := s.cluster.ReplicaOf(t, master)
			h := s.holdAs(g, holder, "late")
			heard(t, master, replica)
			master.Pause(t)
			pause(t.Context(), work+200*time.Millisecond) // the commit has been sent by now
			master.Stop(t)
			died := time.Now()
			s.cluster.Failover(t, replica, "TAKEOVER")

			got := <-h.replies
			statuses = append(statuses, got.status)
			if got.status != 200 && got.status != 503 {
				t.Errorf("the holder's request was answered with %d %q", got.status, got.text)
			}
			eventually(t, lease+takeover, "the next one is served", func() bool {
				return g.set(s.demos[0], "next").status == 200
			})
			longest = max(longest, time.Since(died))
			want := []string{"before", "next"}
			if got.status == 200 || slices.Contains(g.names(s.demos[0]), h.name) { // a write that was refused may be there
				want = append(want, h.name)
			}
			h.mustHave(s.demos[0], want...)
			master.Restart(t)
			s.cluster.AwaitReady(t)
		}
		s.seen = fmt.Sprintf("the holder's statuses %v, the next request served within %v", statuses, longest.Round(time.Millisecond))
		s.nothingLeft()
	})
}
