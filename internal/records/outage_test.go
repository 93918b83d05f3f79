package records

import (
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// After a failover, open connections stay with the old master, which is a replica now. Its word
// must not count: a session that it does not know may exist. As soon as the address leads to a
// master again, everything works again by itself, since a connection to a replica is closed.
func TestDemotedServerIsUnavailable(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	st := process(t, s)
	create(t, st, "before")
	held := take(t, st)

	s.Do(t, "REPLICAOF", "127.0.0.1", "1") // nobody is there: it keeps its data
	wantError(t, "Save", held.Save(t.Context(), []byte("lost")), ErrUnavailable)
	for what, try := range map[string]func(id string) error{
		"Take":   func(id string) error { _, err := st.Take(t.Context(), id, Terms{}); return err },
		"Load":   func(id string) error { _, err := st.Load(t.Context(), id, Terms{}); return err },
		"Create": func(id string) error { return st.Create(t.Context(), id, []byte("x"), Terms{}) },
	} {
		wantError(t, what+" of a known id", try(theID), ErrUnavailable)
		wantError(t, what+" of an unknown id", try(newID), ErrUnavailable)
	}

	s.Do(t, "REPLICAOF", "NO", "ONE")
	s.Do(t, "DEL", theLock) // which could not be released; its lease would end, too
	save(t, take(t, st), "after")
	wantData(t, s, "after")
}

// Ping fails on a cluster that the client cannot use, whichever node it asks, and the error tells
// what to do. The keys of Ping are spread over the slots, so that a node is detected that lacks an
// eighth of the slots or more, in one piece.
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
