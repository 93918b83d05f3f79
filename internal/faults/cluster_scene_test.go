package faults

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/faults/rig"
	"github.com/a2139e8d/latchkey/internal/redistest"
)

// nodeTimeout is how long a node of a cluster may be silent before the others consider it dead.
const nodeTimeout = 2 * time.Second

// mortal are the flags of nodes that may be considered dead after nodeTimeout. Without them no node is considered
// dead in a test, however busy the machine is.
var mortal = []string{"--cluster-node-timeout", fmt.Sprint(nodeTimeout.Milliseconds())}

// takeover is how soon after the loss of a master the system must have recovered. The cluster itself
// needs the node timeout, and up to a second more for its election.
const takeover = nodeTimeout + 3*time.Second

// goredisPool is how many connections go-redis may keep to a node that has become a master, or that has
// received more requests at once: 10 for pipelines, and 10 for each core.
var goredisPool = 10 + 10*runtime.GOMAXPROCS(0)

// clusterApp takes the place of the demo in scenes with a cluster.
var clusterApp = demotest.Variant{Module: "github.com/a2139e8d/latchkey/internal/faults", Package: "./clusterapp"}

// eachClient runs a test with each client for clusters.
func eachClient(t *testing.T, f func(t *testing.T, client string)) {
	t.Parallel()
	for _, client := range []string{"rueidis", "goredis"} {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			f(t, client)
		})
	}
}

// stageCluster starts a scene whose Redis is a cluster of three masters with a replica each. By default,
// eight visitors have sessions on all of them.
func stageCluster(t *testing.T, client, fault, promise string, with setting) *scene {
	t.Helper()
	if with.visitors == 0 {
		with.visitors, with.clients = 8, 2
	}
	with.slack = 2*slack + 2*with.visitors // a process may get more of the visitors, and meets more nodes
	if client == "goredis" {
		with.slack += goredisPool
	}
	with = with.complete()
	s := &scene{T: t, setting: with, cluster: redistest.NewCluster(t, 3, 1, with.redis...)}
	t.Cleanup(func() { s.row(fmt.Sprintf("cluster, %s: %s", client, fault), promise) })
	for range with.demos {
		s.open(s.startApp(client))
	}
	return s
}

// startApp starts one more process. Visitors do not use it.
func (s *scene) startApp(client string, flags ...string) *demotest.Demo {
	s.Helper()
	var addrs []string
	for _, node := range s.cluster.Nodes {
		addrs = append(addrs, node.Addr)
	}
	return clusterApp.Start(s.T, append(append([]string{"-client", client, "-redis", strings.Join(addrs, ","),
		"-lease", s.lease.String(), "-timeout", s.exchange.String(), "-lock-wait", lockWait.String()}, s.flags...), flags...)...)
}

// A loss is the loss of a master with a guest's session on it.
type loss struct {
	*scene
	guest           *guest
	count           int // in the guest's session
	master, replica *redistest.Server
	slots           map[int]bool // the master's
	began           time.Time
}

// lose chooses the master that will be lost: the one with a guest's session. Its replica has all data of that
// session.
func (s *scene) lose() *loss {
	s.Helper()
	l := &loss{scene: s, guest: s.guest(s.demos[0]), slots: make(map[int]bool)}
	for range 3 {
		l.count++
		l.guest.must("a write before the loss", l.guest.post(s.demos[0], "/incr"), 200, fmt.Sprint(l.count))
	}
	l.master = s.at(rig.RecordKey(s.T, l.guest.cookie))
	l.replica = s.cluster.ReplicaOf(s.T, l.master)
	for _, slot := range s.cluster.SlotsOf(s.T, l.master) {
		l.slots[slot] = true
	}
	heard(s.T, l.master, l.replica)
	l.replica.Do(s.T, "CONFIG", "SET", "cluster-replica-no-failover", "yes") // until note has recorded what the replica has
	l.began = time.Now()
	return l
}

// heard waits until a replica has all the data that its master has had.
func heard(t *testing.T, master, replica *redistest.Server) {
	t.Helper()
	const offset = "master_repl_offset:" // also that of a replica
	had := info(t, master, offset)
	eventually(t, 10*time.Second, "the replica has all", func() bool { return info(t, replica, offset) >= had })
}

// note is called when the replica receives nothing more and may not take over yet. It records what the replica
// has, and when the old master stops answering. The visitors' histories are judged by that: only data that the
// replica had not received may be lost.
func (l *loss) note() {
	l.Helper()
	pause(l.Context(), delivery)
	l.replica.Do(l.T, "CONFIG", "SET", "cluster-allow-reads-when-down", "yes")
	l.setback = setback(l.T, l.began, l.replica)
	l.replica.Do(l.T, "CONFIG", "SET", "cluster-allow-reads-when-down", "no", "cluster-replica-no-failover", "no")
	l.setback.Spares = func(cookie string) bool {
		return !l.slots[l.cluster.Slot(l.T, rig.RecordKey(l.T, cookie))]
	}
}

// awaitGuest waits until the guest is served again, with the session as it was, and returns how long
// after the loss that was. Until then every response must be a 503.
func (l *loss) awaitGuest() time.Duration {
	l.Helper()
	unknown := 0 // writes that may have been done
	for {
		got := l.guest.post(l.demos[0], "/incr")
		took := time.Since(l.began)
		if got.status == 200 {
			var n int
			if _, err := fmt.Sscan(got.text, &n); err != nil || n <= l.count || n > l.count+unknown+1 || got.cookie != "" {
				l.Errorf("the guest's session after the loss: %q, cookie %q, after %d writes and %d that may have been done", got.text, got.cookie, l.count, unknown)
			}
			l.count = n
			return took
		}
		if unknown++; got.status != 503 || took > 2*l.longest+lateSince(l.began) {
			l.Fatalf("the guest's write was answered with %d %q, %v after the loss", got.status, got.text, took)
		}
	}
}

// well asserts how soon the guest and all visitors were served again, and records it in the table.
func (l *loss) well(guest, limit time.Duration) {
	l.Helper()
	l.recovered = max(l.recovered, guest)
	l.seen = fmt.Sprintf("%d answered writes lost", l.lost)
	l.backWithin(limit)
}

// refusals returns how often the nodes that answer have replied with an error of this kind.
func (s *scene) refusals(kind string) (n int) {
	s.Helper()
	for _, node := range s.cluster.Nodes {
		if node.Answers(s.T) {
			n += info(s.T, node, "errorstat_"+kind+":count=")
		}
	}
	return n
}

// redirected asserts that clients were sent to another node, and records in the table how often.
func (s *scene) redirected() {
	s.Helper()
	moved := s.refusals("MOVED")
	s.seen += fmt.Sprintf("MOVED %d, ASK %d, TRYAGAIN %d times", moved, s.refusals("ASK"), s.refusals("TRYAGAIN"))
	happened(s.T, "a client was sent to another node", moved, 1)
}
