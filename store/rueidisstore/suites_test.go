package rueidisstore

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/clustertest"
	"github.com/a2139e8d/latchkey/internal/locksite"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/internal/storetest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/a2139e8d/latchkey/locker/transport/clienttest"
	"github.com/a2139e8d/latchkey/store"
	"github.com/redis/rueidis"
)

// A client over rueidis keeps all promises of a Client.
func TestClient(t *testing.T) {
	t.Parallel()
	clienttest.Run(t, clienttest.Kind{
		Open: func(t testing.TB, address string, timeout time.Duration) transport.Client {
			return opened(t, rueidis.ClientOption{InitAddress: []string{address}}, timeout)
		},
		Start:    func(t testing.TB) clienttest.Server { return clustertest.Server(t, redistest.Real(t)) },
		OneWrite: true,
	})
}

// A store over rueidis keeps its promises.
func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB, address string, timeout time.Duration) transport.Client {
		return opened(t, redis2(address), timeout)
	})
}

// The sessions of users also work over rueidis, with its default protocol.
func TestUsers(t *testing.T) {
	t.Parallel()
	storetest.RunUsers(t, func(t testing.TB, address string, timeout time.Duration) transport.Client {
		return opened(t, rueidis.ClientOption{InitAddress: []string{address}}, timeout)
	})
}

// Locks keep the promises of a Locker over rueidis.
func TestLockers(t *testing.T) {
	t.Parallel()
	locksite.Run(t, func(t testing.TB, address string, timeout time.Duration) transport.Client {
		return connected(t, redis2(address), timeout)
	})
}

// Processes take turns.
func TestTurns(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	storetest.Turns(t, func(t testing.TB) *store.Store { return openStore(t, at(server), patient) })
}

// Streams end when another process ends their sessions.
func TestStreams(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	clustertest.Streams(t, openStore(t, at(server), patient), openStore(t, at(server), patient))
}

// BenchmarkRound is a round for 10,000 streams: on one server and, with -cluster, on three nodes.
func BenchmarkRound(b *testing.B) {
	b.Run("one server", func(b *testing.B) {
		server := redistest.Real(b)
		clustertest.BenchmarkRound(b, openStore(b, at(server), patient), server)
	})
	b.Run("cluster", func(b *testing.B) {
		if !*onCluster {
			b.Skip("left out: clusters, without -cluster")
		}
		nodes := redistest.NewCluster(b, 3, 0).Nodes
		clustertest.BenchmarkRound(b, openStore(b, at(nodes...), patient), nodes...)
	})
}

// Connections to a server that is not a master any more are closed. Refused commands are sent again, to the new master.
func TestDemotedServerIsLeft(t *testing.T) {
	t.Parallel()
	clustertest.LeavesDemoted(t, openWay, 0)
}

// On a cluster, and with Sentinel, all promises hold while slots move and masters die.
func TestOnCluster(t *testing.T) {
	if !*onCluster {
		t.Skip("left out: clusters and Sentinel, without -cluster")
	}
	t.Parallel()
	all := clustertest.Rights(t, "rueidisstore.go", "one server", "cluster")
	clustertest.Run(t, openWay, all, map[string]func(t *testing.T, c *redistest.Cluster){
		"NoOtherDatabase": noOtherDatabase,
	})
}

// A cluster has one database.
func noOtherDatabase(t *testing.T, c *redistest.Cluster) {
	o := at(c.Nodes[0])
	o.SelectDB = 1
	leadsNowhere(t, o, "SelectDB must be 0 with a cluster")
}

func openWay(t testing.TB, w clustertest.Way, timeout time.Duration) transport.Client {
	o := rueidis.ClientOption{InitAddress: w.Addresses, Username: w.User, Password: w.Password, AlwaysRESP2: w.RESP2}
	o.Sentinel.MasterSet = w.MasterSet
	if w.Dial != nil {
		o.DialCtxFn = func(ctx context.Context, address string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return w.Dial(ctx, address)
		}
	}
	if w.RESP2 {
		return connected(t, o, timeout)
	}
	return opened(t, o, timeout)
}

func redis2(address string) rueidis.ClientOption {
	return rueidis.ClientOption{InitAddress: []string{address}, AlwaysRESP2: true}
}

// connected returns a connected client, for tests whose timeouts may be too short to connect.
func connected(t testing.TB, o rueidis.ClientOption, timeout time.Duration) transport.Client {
	c := opened(t, o, timeout)
	redistest.Eventually(t, "there is a connection", func() bool {
		_, err := c.maker.client(t.Context(), time.Now().Add(timeout))
		return err == nil
	})
	return c
}

// The rights in the package's comment are enough on one server, even for a process that waits.
func TestLeastRights(t *testing.T) {
	t.Parallel()
	clustertest.RightsSuffice(t, openWay, "rueidisstore.go")
}
