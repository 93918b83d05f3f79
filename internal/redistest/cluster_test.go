package redistest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// set stores a value on a node, and returns what is wrong.
func set(t *testing.T, node *redistest.Server, key string) error {
	t.Helper()
	c, err := redis.DialURL(node.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Do("SET", key, "v")
	return err
}

// In a cluster each node has a part of the slots, and says where the others are.
func TestClusterRedirects(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, 0)
	refused := 0
	for _, node := range c.Nodes {
		switch err := set(t, node, "k"); {
		case err == nil:
			if c.Owner(t, c.Slot(t, "k")) != node {
				t.Errorf("%s took a key of another's slot", node.Addr)
			}
		case strings.HasPrefix(err.Error(), "MOVED "):
			refused++
		default:
			t.Errorf("SET: %v", err)
		}
	}
	if refused != 2 {
		t.Errorf("%d nodes answered MOVED, want 2", refused)
	}
	if keys := c.Keys(t); !slices.Equal(keys, []string{"k"}) {
		t.Errorf("Keys() = %q", keys)
	}
}

// Of a slot that is half-moved the old master has the keys that are there, and the new one gets
// the rest. When it has been moved, the new one has all of them.
func TestClusterMovesASlot(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 2, 0)
	slot := c.Slot(t, "{k}")
	from := c.Owner(t, slot)
	to := c.Nodes[1-slices.Index(c.Nodes, from)]
	if err := set(t, from, "{k}old"); err != nil {
		t.Fatal(err)
	}
	m := c.BeginMove(t, slot, to)
	if err := set(t, from, "{k}old"); err != nil {
		t.Errorf("a key that is there: %v", err)
	}
	if err := set(t, from, "{k}new"); err == nil || !strings.HasPrefix(err.Error(), "ASK ") {
		t.Errorf("a key that is not there: %v, want ASK", err)
	}
	c.FinishMove(t, m)
	if err := set(t, to, "{k}new"); err != nil {
		t.Errorf("the new master: %v", err)
	}
	if keys := to.Keys(t); !slices.Equal(keys, []string{"{k}new", "{k}old"}) {
		t.Errorf("the new master has %q", keys)
	}
	if c.Owner(t, slot) != to {
		t.Error("the slot has not moved")
	}
}

// quick is how long a node may be silent until it counts as dead.
var quick = []string{"--cluster-node-timeout", "2000"}

// When a master dies, its replica takes over, with all data; and when it comes back, it is a
// replica of that.
func TestClusterFailsOver(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, 1, quick...)
	master := c.Owner(t, c.Slot(t, "k"))
	replica := c.ReplicaOf(t, master)
	if err := set(t, master, "k"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the replica has the key", func() bool { return slices.Equal(replica.Keys(t), []string{"k"}) })
	master.Stop(t)
	c.AwaitMaster(t, replica)
	eventually(t, "the replica has the slot", func() bool { return set(t, replica, "k") == nil })
	master.Restart(t)
	c.AwaitReady(t)
	if c.ReplicaOf(t, replica) != master {
		t.Error("the old master is no replica of the new one")
	}

	c.Failover(t, master)
	if err := set(t, master, "k"); err != nil {
		t.Errorf("after a failover by command: %v", err)
	}
}

// A master that is cut off from all other nodes still answers, until it notices; what it takes
// meanwhile does not reach its replica, which takes over. When they meet again it gives in.
func TestClusterPartition(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, 1, quick...)
	master := c.Owner(t, c.Slot(t, "k"))
	replica := c.ReplicaOf(t, master)
	c.Partition(t, master)
	if err := set(t, master, "k"); err != nil {
		t.Errorf("right after the partition: %v", err)
	}
	eventually(t, "the master notices", func() bool {
		err := set(t, master, "k")
		return err != nil && strings.HasPrefix(err.Error(), "CLUSTERDOWN ")
	})
	c.AwaitMaster(t, replica)
	if keys := replica.Keys(t); len(keys) > 0 {
		t.Errorf("the replica has %q, which its master got after the partition", keys)
	}
	c.Heal(t)
	c.AwaitReady(t)
	if c.ReplicaOf(t, replica) != master || len(master.Keys(t)) > 0 {
		t.Error("the old master has not given in")
	}
}

// A node that is added has no slots until some are moved to it. One that is removed leaves its
// slots and keys to another.
func TestClusterGrowsAndShrinks(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 1, 0)
	old, added := c.Nodes[0], c.Add(t)
	for i := range 20 {
		if err := set(t, old, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	c.Move(t, c.Slot(t, "0"), added)
	c.MoveAll(t, []int{c.Slot(t, "1")}, old, added)
	if n := len(added.Keys(t)); n != 2 || len(c.SlotsOf(t, added)) != 2 {
		t.Errorf("the new node has %d keys and slots %v", n, c.SlotsOf(t, added))
	}
	c.Remove(t, added, old)
	if n := len(old.Keys(t)); n != 20 || len(c.SlotsOf(t, old)) != redistest.Slots || len(c.Nodes) != 1 {
		t.Errorf("without it there are %d keys and %d slots", n, len(c.SlotsOf(t, old)))
	}
}
