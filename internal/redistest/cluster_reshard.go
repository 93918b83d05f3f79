package redistest

import (
	"testing"

	"github.com/gomodule/redigo/redis"
)

// MoveAll moves slots from one master to another, many at the same time, as fast as the nodes can.
func (c *Cluster) MoveAll(tb testing.TB, slots []int, from, to *Server) {
	tb.Helper()
	const together = 256
	fromID, toID := c.ID(tb, from), c.ID(tb, to)
	for len(slots) > 0 {
		some := slots[:min(together, len(slots))]
		slots = slots[len(some):]
		ofSlots(tb, to, some, "SETSLOT", "IMPORTING", fromID)
		ofSlots(tb, from, some, "SETSLOT", "MIGRATING", toID)
		for i, n := range ofSlots(tb, from, some, "COUNTKEYSINSLOT") {
			if n != int64(0) { // and from now on no key is added
				c.moveKeys(tb, SlotMove{Slot: some[i], From: from, To: to})
			}
		}
		ofSlots(tb, to, some, "SETSLOT", "NODE", toID)
		ofSlots(tb, from, some, "SETSLOT", "NODE", toID)
	}
}

// ofSlots sends a command of CLUSTER for each slot, all at once, and returns the replies.
func ofSlots(tb testing.TB, node *Server, slots []int, cmd string, args ...any) []any {
	tb.Helper()
	conn := node.admin.Get()
	defer conn.Close()
	for _, slot := range slots {
		_ = conn.Send("CLUSTER", append([]any{cmd, slot}, args...)...) // the reply carries its error
	}
	replies, err := redis.Values(conn.Do(""))
	if err == nil {
		for _, reply := range replies {
			if refusal, refused := reply.(redis.Error); refused {
				err = refusal
			}
		}
	}
	if err != nil {
		tb.Fatalf("redistest: CLUSTER %s %v: %v", cmd, args, err)
	}
	return replies
}
