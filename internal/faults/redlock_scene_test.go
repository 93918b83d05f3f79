package faults

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
	"github.com/a2139e8d/latchkey/internal/redistest"
)

// redlockLease is longer than that of other scenes, since a node has only a fiftieth of it
// to answer.
const redlockLease = 2 * time.Second

// A quorum is a scene whose sessions are guarded by Redlock on five servers. The first
// has the records, too.
type quorum struct {
	*scene
	nodes []*redistest.Server
	ways  [][]*rig.Wire // of each demo to each node, if wired
}

func stageRedlock(t *testing.T, fault, promise string, with setting) *quorum {
	t.Helper()
	q := &quorum{}
	wired := with.wired
	with.wired = false
	with.flags = append([]string{"-lock", "redlock", "-lease", redlockLease.String()}, with.flags...)
	with.url = func(s *scene) string {
		if q.nodes == nil {
			q.nodes = []*redistest.Server{s.redis}
			for range 4 {
				q.nodes = append(q.nodes, redistest.Real(t))
			}
		}
		var urls []string
		var ways []*rig.Wire
		for _, node := range q.nodes {
			if !wired {
				urls = append(urls, node.URL)
				continue
			}
			w := rig.NewWire(t, node.Addr)
			ways, urls = append(ways, w), append(urls, w.URL)
		}
		q.ways = append(q.ways, ways)
		return strings.Join(urls, ",")
	}
	q.scene = stage(t, fault, promise, with)
	return q
}

// run is that of a scene, but allows for more connections: a process has four to each node
// as a rule, but not from the start, and as many again where a node was silent.
func (q *quorum) run(fault func(ctx context.Context)) {
	q.Helper()
	q.scene.run(func(ctx context.Context) {
		for i := range q.files {
			q.files[i] += 4 * len(q.nodes)
		}
		fault(ctx)
	})
}

// mustWork waits until a new write of each visitor has been answered.
func (q *quorum) mustWork(when string) {
	q.Helper()
	q.awaitWrites(when, time.Now())
}

// mustAnswerNone asserts that no write is answered, except those already on their way.
func (q *quorum) mustAnswerNone(ctx context.Context, when string) {
	q.Helper()
	begun := time.Now()
	pause(ctx, 300*time.Millisecond)
	for i, v := range q.visitors {
		if v.WroteSince(begun.Add(100 * time.Millisecond)) {
			q.Errorf("%s: a write of visitor %d was answered", when, i)
		}
	}
}

// nothingLeftAnywhere asserts that no node has a lock any more.
func (q *quorum) nothingLeftAnywhere() {
	q.Helper()
	eventually(q.T, redlockLease+2*timeout, "no lock is left on any node", func() bool {
		for _, node := range q.nodes[1:] {
			if len(node.Keys(q.T)) > 0 {
				return false
			}
		}
		return true
	})
}
