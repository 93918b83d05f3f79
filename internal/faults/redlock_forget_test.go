package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
)

// Nodes forget their locks, again and again, as if they were restarted at once after a
// crash, which locker/README.md advises against: then two processes can have the lock. The
// fence of the record still keeps anything from being lost.
func TestRedlockNodesForget(t *testing.T) {
	t.Parallel()
	q := stageRedlock(t, "Redlock: three of five nodes forget, many times", "P1: the record's own check loses nothing",
		setting{visitors: 1, logins: true, flags: []string{"-work", "20ms"}})
	q.run(func(context.Context) {
		q.contend(func() bool {
			for _, node := range q.nodes[2:] {
				node.Do(t, "FLUSHALL")
			}
			return q.logged("lock was lost") >= 5
		})
	})
	q.nothingLeftAnywhere()
}

// Two processes have the lock, since three nodes have forgotten the first. The one that
// saves first wins, and the other gets ErrLost.
func TestRedlockTwoHolders(t *testing.T) {
	for _, last := range []bool{true, false} {
		name := "the second saves first"
		if !last {
			name = "the first saves first"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := noted(t, "Redlock: nodes forget, so two hold a session; "+name, "P3: one gets ErrLost, nothing is overwritten")
			var nodes []*redistest.Server
			for range 5 {
				nodes = append(nodes, redistest.Real(t))
			}
			ctx := t.Context()
			process := func() *store.Store {
				var pools []*redis.Pool
				for _, node := range nodes {
					pools = append(pools, node.Pool(t, 8))
				}
				lock := locker.NewRedlock(pools, locker.Options{Lease: 20 * time.Second})
				return store.New(nodes[0].Pool(t, 8), store.Options{Locker: lock})
			}
			first, second := process(), process()
			if err := first.Create(ctx, "id", []byte("0"), store.Terms{}); err != nil {
				t.Fatal(err)
			}
			a, err := first.Take(ctx, "id", store.Terms{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := second.Take(ctx, "id", store.Terms{LockWait: 300 * time.Millisecond}); !errors.Is(err, store.ErrTimeout) {
				t.Fatalf("a second holder, while all nodes know the first: %v", err)
			}
			for _, node := range nodes[2:] {
				node.Restart(t)
			}
			b, err := second.Take(ctx, "id", store.Terms{})
			if err != nil {
				t.Fatalf("there is no second holder: %v", err)
			}
			holds := []*store.Hold{a, b}
			if last {
				holds = []*store.Hold{b, a}
			}
			if err := holds[0].Save(ctx, []byte("winner")); err != nil {
				t.Errorf("the first to save: %v", err)
			}
			err = holds[1].Save(ctx, []byte("loser"))
			if !errors.Is(err, store.ErrLost) {
				t.Errorf("the last to save: %v, want ErrLost", err)
			}
			if got, _ := nodes[0].Get(t, "latchkey:{id}"); !strings.Contains(got, "winner") {
				t.Errorf("the record is %q", got)
			}
			r.seen = fmt.Sprintf("the last to save got: %v", err)
		})
	}
}
