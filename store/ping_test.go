package store

import (
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// A cluster that the client cannot use is not ready, whichever of its nodes is asked, and the
// error says what to do. For that the keys that Ping asks for are spread over the slots, so that a node
// which lacks an eighth of them or more, in one piece, is found out.
func TestPingOfACluster(t *testing.T) {
	t.Parallel()
	const parts, slots = len(pinged), 16384
	for _, node := range redistest.NewCluster(t, 2, 0).Nodes {
		st := opened(t, node.URL, Options{Prefix: "app:", Timeout: patient.Timeout})
		err := st.Ping(t.Context())
		wantError(t, "Ping", err, ErrUnavailable)
		wantMessage(t, err, []string{"MOVED", "cluster", "rueidisstore.Open"})
		for i, id := range pinged {
			slot, err := redis.Int(node.Do(t, "CLUSTER", "KEYSLOT", st.keys(id)[0]), nil)
			if middle := (2*i + 1) * slots / parts / 2; err != nil || slot < middle-200 || slot > middle+200 {
				t.Errorf("%s is in slot %d, %v, want about %d", id, slot, err, middle)
			}
		}
	}
}
