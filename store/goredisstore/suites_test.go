package goredisstore

import (
	"testing"

	"github.com/a2139e8d/latchkey/internal/clustertest"
	"github.com/a2139e8d/latchkey/internal/locksite"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/internal/storetest"
	"github.com/a2139e8d/latchkey/locker/transport/clienttest"
	"github.com/a2139e8d/latchkey/store"
)

// Go-redis keeps all promises of a Client.
func TestClient(t *testing.T) {
	t.Parallel()
	clienttest.Run(t, clienttest.Kind{
		Open:     open,
		Start:    func(t testing.TB) clienttest.Server { return clustertest.Server(t, redistest.Real(t)) },
		OneWrite: true,
	})
}

// A store over go-redis keeps its promises.
func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, openRESP2)
}

// The sessions of users also work over go-redis, with its default protocol.
func TestUsers(t *testing.T) {
	t.Parallel()
	storetest.RunUsers(t, open)
}

// Locks keep the promises of a Locker over go-redis.
func TestLockers(t *testing.T) {
	t.Parallel()
	locksite.Run(t, openRESP2)
}

// Processes take turns.
func TestTurns(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	storetest.Turns(t, func(t testing.TB) *store.Store { return newStore(t, at(server), patience) })
}

// Streams end when another process ends their sessions.
func TestStreams(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	clustertest.Streams(t, newStore(t, at(server), patience), newStore(t, at(server), patience))
}

// BenchmarkRound is a round for 10,000 streams: on one server and, with -cluster, on three nodes.
func BenchmarkRound(b *testing.B) {
	b.Run("one server", func(b *testing.B) {
		server := redistest.Real(b)
		clustertest.BenchmarkRound(b, newStore(b, at(server), patience), server)
	})
	b.Run("cluster", func(b *testing.B) {
		if !*onCluster {
			b.Skip("left out: clusters, without -cluster")
		}
		nodes := redistest.NewCluster(b, 3, 0).Nodes
		clustertest.BenchmarkRound(b, newStore(b, at(nodes...), patience), nodes...)
	})
}

// Connections to a server that is not a master any more are closed. Each may cost a request.
func TestDemotedServerIsLeft(t *testing.T) {
	t.Parallel()
	clustertest.LeavesDemoted(t, openServer, 5)
}

// The rights in the package's comment are enough on one server, even for a process that waits.
func TestLeastRights(t *testing.T) {
	t.Parallel()
	clustertest.RightsSuffice(t, openServer, "goredisstore.go")
}

// On a cluster, and with Sentinel, all promises hold while slots move and masters die.
func TestOnCluster(t *testing.T) {
	if !*onCluster {
		t.Skip("left out: clusters and Sentinel, without -cluster")
	}
	t.Parallel()
	rights := clustertest.Rights(t, "goredisstore.go", "one server", "cluster")
	clustertest.Run(t, openWay, rights, map[string]func(t *testing.T, c *redistest.Cluster){
		"HalfOfAnExchangeIsRedirected": halfOfAnExchangeIsRedirected,
		"ClusterBehindAClient":         clusterBehindAClient,
	})
}
