package records

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// After a failover, open connections still lead to the old master, which is a replica now. Its reply does not
// count: a session that it does not know may exist.
func TestDemotedServerIsUnavailable(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	create(t, process(t, s), "before")
	s.Do(t, "REPLICAOF", "127.0.0.1", "1") // nobody is there, so it keeps its data

	st := opened(t, s.URL, Options{Prefix: "app:", Timeout: 100 * time.Millisecond})
	for what, try := range map[string]func(id string) error{
		"Take":   func(id string) error { _, _, err := st.Take(t.Context(), id, Terms{}); return err },
		"Load":   func(id string) error { _, err := st.Load(t.Context(), id, Terms{}); return err },
		"Create": func(id string) error { return st.Create(t.Context(), id, []byte("x"), Terms{}) },
	} {
		wantError(t, what+" of a known ID", try(theID), ErrUnavailable)
		wantError(t, what+" of an unknown ID", try(newID), ErrUnavailable)
	}
}

// During a failover, the address still leads to the old master. Connections to a replica are closed, and requests
// wait until the address leads to a master again.
func TestRequestsWaitForAFailover(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	st := process(t, s)
	create(t, st, "before")
	held := take(t, st)
	s.Do(t, "REPLICAOF", "127.0.0.1", "1")
	saved, created := make(chan error, 1), make(chan error, 1)
	go func() { saved <- held.Save(t.Context(), []byte("after")) }()
	go func() { created <- st.Create(t.Context(), newID, []byte("x"), Terms{}) }()
	redistest.Eventually(t, "the old master has refused twice", func() bool {
		info, _ := redis.String(s.Do(t, "INFO", "errorstats"), nil)
		_, count, _ := strings.Cut(info, "errorstat_READONLY:count=")
		return count != "" && !strings.HasPrefix(count, "1\r")
	})
	s.Do(t, "REPLICAOF", "NO", "ONE")
	if err := errors.Join(<-saved, <-created); err != nil {
		t.Error(err)
	}
	wantData(t, s, "after")
}

// Ping fails on a cluster that the client cannot use, whichever node it asks, and says what to do. The keys of
// Ping are spread over the slots. So Ping notices a node that lacks an eighth of all slots in one piece.
func TestPingOfACluster(t *testing.T) {
	t.Parallel()
	const parts, slots = len(pinged), 16384
	for _, node := range redistest.NewCluster(t, 2, 0).Nodes {
		st := opened(t, node.URL, Options{Prefix: "app:", Timeout: patient.Timeout})
		err := st.Ping(t.Context())
		wantError(t, "Ping", err, ErrUnavailable)
		wantMessage(t, err, []string{"MOVED", "cluster", "rueidisstore.Open"})
		for i, id := range pinged {
			slot, err := redis.Int(node.Do(t, "CLUSTER", "KEYSLOT", st.keys(id).record), nil)
			if middle := (2*i + 1) * slots / parts / 2; err != nil || slot < middle-200 || slot > middle+200 {
				t.Errorf("%s is in slot %d, %v, want about %d", id, slot, err, middle)
			}
		}
	}
}
