package faults

import (
	"fmt"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
)

// The node of a session dies when the commit of its holder has been sent, and not answered. The
// holder's client learns the truth, or nothing: if it is told that the write was saved, it is there
// on the new master. The next one gets the session when the lease is over at the latest.
func TestClusterNodeOfTheHolderDies(t *testing.T) {
	eachClient(t, func(t *testing.T, client string) {
		const work = time.Second
		s := stageCluster(t, client, "the holder's node dies between the commit and its answer",
			"P1, P3, P7: answered and saved, or a 503; the next one within the lease", setting{demos: 1, redis: mortal})
		holder := s.startApp(client, "-work", work.String())
		var statuses []int
		var longest time.Duration
		for range unlessShort(4, 2) {
			g := s.guest(s.demos[0])
			g.mustSet(s.demos[0], "before")
			record := rig.RecordKey(t, g.cookie)
			master := s.at(record)
			replica := s.cluster.ReplicaOf(t, master)
			answer := g.setting(holder, "late")
			eventually(t, work, "the request holds its session", func() bool { return master.Exists(t, record+".lock") })
			heard(t, master, replica)
			master.Pause(t)
			pause(t.Context(), work+200*time.Millisecond) // the commit has been sent by now
			master.Stop(t)
			died := time.Now()
			s.cluster.Failover(t, replica, "TAKEOVER")

			got := <-answer
			statuses = append(statuses, got.status)
			if got.status != 200 && got.status != 503 {
				t.Errorf("the holder's request was answered with %d %q", got.status, got.text)
			}
			eventually(t, lease+takeover, "the next one is served", func() bool {
				return g.set(s.demos[0], "next").status == 200
			})
			longest = max(longest, time.Since(died))
			want := []string{"before", "next"}
			if got.status == 200 || len(g.names(s.demos[0])) == 3 { // a write that was refused may be there
				want = append(want, "late")
			}
			g.mustHave(s.demos[0], want...)
			master.Restart(t)
			s.cluster.AwaitReady(t)
		}
		s.seen = fmt.Sprintf("the holder's answers %v, the next one served within %v", statuses, longest.Round(time.Millisecond))
		s.nothingLeft()
	})
}
