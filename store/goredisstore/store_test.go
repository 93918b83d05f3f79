package goredisstore

import (
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/internal/storetest"
	"github.com/a2139e8d/latchkey/store"
	"github.com/redis/go-redis/v9"
)

// A store over go-redis keeps its promises.
func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, openRESP2)
}

// Processes take turns, on one server and on a cluster.
func TestTurns(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	storetest.Turns(t, func(t testing.TB) *store.Store {
		return newStore(t, redis.NewClient(&redis.Options{Addr: server.Addr, ContextTimeoutEnabled: true}))
	})
}

func TestTurnsOnCluster(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, 0)
	storetest.Turns(t, func(t testing.TB) *store.Store {
		return newStore(t, redis.NewClusterClient(clusterOptions(c)))
	})
}

// newStore returns what New makes of c. Both are closed when t ends.
func newStore(t testing.TB, c redis.UniversalClient) *store.Store {
	t.Helper()
	t.Cleanup(func() { c.Close() })
	st, err := New(c, store.Options{Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// So do the sessions of users, by the protocol that it speaks by itself.
func TestUsers(t *testing.T) {
	t.Parallel()
	storetest.RunUsers(t, open)
}
