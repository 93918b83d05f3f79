package store

import (
	"strconv"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// A cluster that the client cannot use is not ready, whichever of its nodes is asked, and the
// error says what to do.
func TestPingOfACluster(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 3} {
		t.Run(strconv.Itoa(n)+" nodes", func(t *testing.T) {
			t.Parallel()
			for _, node := range redistest.NewCluster(t, n, 0).Nodes {
				err := opened(t, node.URL, patient).Ping(t.Context())
				wantError(t, "Ping", err, ErrUnavailable)
				wantMessage(t, err, []string{"MOVED", "cluster", "rueidisstore.Open"})
			}
		})
	}
	t.Run("one node that has all slots", func(t *testing.T) {
		t.Parallel()
		st := opened(t, redistest.NewCluster(t, 1, 0).Nodes[0].URL, patient)
		if err := st.Ping(t.Context()); err != nil {
			t.Errorf("Ping: %v", err)
		}
		create(t, st, "1")
		save(t, take(t, st), "2")
	})
}

// The keys that Ping asks for are spread over the slots, so that a node which lacks an eighth of
// them or more, in one piece, is found out.
func TestPingAsksForAllPartsOfACluster(t *testing.T) {
	t.Parallel()
	const parts, slots = len(pinged), 16384
	node := redistest.NewCluster(t, 1, 0).Nodes[0]
	st := opened(t, node.URL, Options{Prefix: "app:"})
	for i, id := range pinged {
		slot, err := redis.Int(node.Do(t, "CLUSTER", "KEYSLOT", st.keys(id)[0]), nil)
		if middle := (2*i + 1) * slots / parts / 2; err != nil || slot < middle-200 || slot > middle+200 {
			t.Errorf("%s is in slot %d, %v, want about %d", id, slot, err, middle)
		}
	}
}
