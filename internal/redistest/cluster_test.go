package redistest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// set stores a value on a node, and returns the error.
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

// refusal is the first word of an error, or "".
func refusal(err error) string {
	if err == nil {
		return ""
	}
	word, _, _ := strings.Cut(err.Error(), " ")
	return word
}

// Each node has some of the slots, and redirects clients to the owners of the others. While a slot is
// half-moved, the old master has the keys that exist, and the new master gets all new ones. After the
// move the new master has all of them. An added node has no slots until some are moved to it. A removed
// node leaves its slots and keys to another node.
func TestClusterMovesSlots(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 2, 0)
	slot := c.Slot(t, "{k}")
	from := c.Owner(t, slot)
	to := c.Nodes[1-slices.Index(c.Nodes, from)]
	if here, there := refusal(set(t, from, "{k}old")), refusal(set(t, to, "{k}old")); here != "" || there != "MOVED" {
		t.Errorf("the owner replies %q, the other node %q", here, there)
	}
	m := c.BeginMove(t, slot, to)
	if old, new := refusal(set(t, from, "{k}old")), refusal(set(t, from, "{k}new")); old != "" || new != "ASK" {
		t.Errorf("the old master replies %q for an existing key, %q for a new one", old, new)
	}
	c.FinishMove(t, m)
	if err := set(t, to, "{k}new"); err != nil || c.Owner(t, slot) != to {
		t.Errorf("the new master: %v", err)
	}
	if keys := c.Keys(t); !slices.Equal(keys, []string{"{k}new", "{k}old"}) || !slices.Equal(keys, to.Keys(t)) {
		t.Errorf("the new master lacks some of %q", keys)
	}

	added := c.Add(t)
	c.Move(t, slot, added)
	c.MoveAll(t, c.SlotsOf(t, from)[:300], from, added)
	if n := len(c.SlotsOf(t, added)); len(added.Keys(t)) != 2 || n != 301 {
		t.Errorf("the new node has %d slots and %q", n, added.Keys(t))
	}
	c.Remove(t, added, to)
	if n := len(c.SlotsOf(t, from)) + len(c.SlotsOf(t, to)); len(to.Keys(t)) != 2 || n != redistest.Slots || len(c.Nodes) != 2 {
		t.Errorf("without the removed node there are %d slots, and the heir has %q", n, to.Keys(t))
	}
}

// quick is how long a node may be silent before it counts as dead.
var quick = []string{"--cluster-node-timeout", "2000"}

// A master that is cut off from all other nodes still answers until it notices. Writes that it accepts
// meanwhile do not reach its replica, which takes over. When the nodes meet again, the old master becomes
// a replica.
func TestClusterPartition(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, 1, quick...)
	master := c.Owner(t, c.Slot(t, "k"))
	replica := c.ReplicaOf(t, master)
	c.Partition(t, master)
	if err := set(t, master, "k"); err != nil {
		t.Errorf("right after the partition: %v", err)
	}
	redistest.Eventually(t, "the master notices", func() bool { return refusal(set(t, master, "k")) == "CLUSTERDOWN" })
	c.AwaitMaster(t, replica)
	if keys := replica.Keys(t); len(keys) > 0 {
		t.Errorf("the replica has %q, which its master got after the partition", keys)
	}
	c.Heal(t)
	redistest.Eventually(t, "the old master gives in", func() bool { return !master.IsMaster(t) })
	c.AwaitReady(t)
	if c.ReplicaOf(t, replica) != master || len(master.Keys(t)) > 0 {
		t.Error("the old master has not given in")
	}
}
