package redistest

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
)

// Slot returns the slot of a key.
func (c *Cluster) Slot(tb testing.TB, key string) int {
	tb.Helper()
	slot, err := redis.Int(c.living(tb).Do(tb, "CLUSTER", "KEYSLOT", key), nil)
	if err != nil {
		tb.Fatalf("redistest: CLUSTER KEYSLOT: %v", err)
	}
	return slot
}

// living returns a node that answers.
func (c *Cluster) living(tb testing.TB) *Server {
	tb.Helper()
	i := slices.IndexFunc(c.Nodes, func(s *Server) bool { return s.Answers(tb) })
	if i < 0 {
		tb.Fatal("redistest: no node of the cluster answers")
	}
	return c.Nodes[i]
}

// SlotsOf returns the slots that a master says it has.
func (c *Cluster) SlotsOf(tb testing.TB, node *Server) (slots []int) {
	tb.Helper()
	id := c.ID(tb, node)
	shares, err := redis.Values(node.Do(tb, "CLUSTER", "SLOTS"), nil)
	if err != nil {
		tb.Fatalf("redistest: CLUSTER SLOTS: %v", err)
	}
	for _, share := range shares {
		s := share.([]any)
		if string(s[2].([]any)[2].([]byte)) == id {
			for slot := s[0].(int64); slot <= s[1].(int64); slot++ {
				slots = append(slots, int(slot))
			}
		}
	}
	return slots
}

// Owner returns the master that says it has a slot. During a failover that the old master has not heard
// of there may be two: the one with the newer epoch counts. During a move there may be none for a moment.
func (c *Cluster) Owner(tb testing.TB, slot int) (owner *Server) {
	tb.Helper()
	Await(tb, fmt.Sprintf("slot %d has an owner", slot), func() error {
		newest := -1
		for _, node := range c.Masters(tb) {
			if slices.Contains(c.SlotsOf(tb, node), slot) {
				if epoch := c.epoch(tb, node); epoch > newest {
					owner, newest = node, epoch
				}
			}
		}
		if owner == nil {
			return errors.New("no master has it")
		}
		return nil
	})
	return owner
}

// epoch returns the epoch of a master's claim to its slots.
func (c *Cluster) epoch(tb testing.TB, node *Server) int {
	tb.Helper()
	return c.info(tb, node, "cluster_my_epoch")
}

// info returns a number from CLUSTER INFO.
func (c *Cluster) info(tb testing.TB, node *Server, name string) int {
	tb.Helper()
	for line := range strings.Lines(text(tb, node, "CLUSTER", "INFO")) {
		if value, found := strings.CutPrefix(strings.TrimSpace(line), name+":"); found {
			n, err := strconv.Atoi(value)
			if err != nil {
				tb.Fatalf("redistest: CLUSTER INFO: %v", err)
			}
			return n
		}
	}
	tb.Fatalf("redistest: CLUSTER INFO has no %s", name)
	return 0
}

// Move moves a slot with its keys to another master.
func (c *Cluster) Move(tb testing.TB, slot int, to *Server) {
	tb.Helper()
	c.FinishMove(tb, c.BeginMove(tb, slot, to))
}

// A SlotMove is the move of a slot, which has two masters until it is finished.
type SlotMove struct {
	Slot     int
	From, To *Server
}

// BeginMove leaves a slot half-moved: the old master keeps its keys, and the new master gets every key that is
// created from now on.
func (c *Cluster) BeginMove(tb testing.TB, slot int, to *Server) SlotMove {
	tb.Helper()
	m := SlotMove{Slot: slot, From: c.Owner(tb, slot), To: to}
	c.begin(tb, m)
	return m
}

func (c *Cluster) begin(tb testing.TB, m SlotMove) {
	tb.Helper()
	m.To.Do(tb, "CLUSTER", "SETSLOT", m.Slot, "IMPORTING", c.ID(tb, m.From))
	m.From.Do(tb, "CLUSTER", "SETSLOT", m.Slot, "MIGRATING", c.ID(tb, m.To))
}

// FinishMove moves the keys, and makes the new master the owner of the slot.
func (c *Cluster) FinishMove(tb testing.TB, m SlotMove) {
	tb.Helper()
	c.moveKeys(tb, m)
	id := c.ID(tb, m.To)
	m.To.Do(tb, "CLUSTER", "SETSLOT", m.Slot, "NODE", id)
	m.From.Do(tb, "CLUSTER", "SETSLOT", m.Slot, "NODE", id)
	c.awaitEpoch(tb, m.To)
}

// awaitEpoch waits until all nodes have heard of the epoch with which a node claims its slots. The next
// node that claims a slot must choose a later epoch, or it loses the slot to the claim that it has not
// heard of.
func (c *Cluster) awaitEpoch(tb testing.TB, claimant *Server) {
	tb.Helper()
	epoch := c.info(tb, claimant, "cluster_my_epoch")
	Await(tb, "all nodes know the last move of a slot", func() error {
		for _, node := range c.Nodes {
			if node.Answers(tb) && c.info(tb, node, "cluster_current_epoch") < epoch {
				return fmt.Errorf("%s does not", node.Addr)
			}
		}
		return nil
	})
}

// moveKeys moves the keys of a half-moved slot. The old master still owns the slot, and redirects clients
// to the new one.
func (c *Cluster) moveKeys(tb testing.TB, m SlotMove) {
	tb.Helper()
	host, port, _ := net.SplitHostPort(m.To.Addr)
	for {
		keys, err := redis.Values(m.From.Do(tb, "CLUSTER", "GETKEYSINSLOT", m.Slot, 100), nil)
		if err != nil {
			tb.Fatalf("redistest: CLUSTER GETKEYSINSLOT: %v", err)
		}
		if len(keys) == 0 {
			return
		}
		// Keys that have expired by now are no error.
		m.From.Do(tb, "MIGRATE", append([]any{host, port, "", 0, 5000, "KEYS"}, keys...)...)
	}
}

// Keys returns the keys of all masters, sorted. During a failover or a move, a key may be missing or
// appear twice.
func (c *Cluster) Keys(tb testing.TB) (keys []string) {
	tb.Helper()
	for _, node := range c.Masters(tb) {
		keys = append(keys, node.Keys(tb)...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
