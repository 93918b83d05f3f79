package rueidisstore

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/locksite"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/internal/storetest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/a2139e8d/latchkey/locker/transport/clienttest"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
	"github.com/redis/rueidis"
)

// The suites of what is built on a client, on a cluster. It has one node, so that all that can be
// done to a server is done to the cluster.

func TestClientOfCluster(t *testing.T) {
	t.Parallel()
	clienttest.Run(t, clienttest.Kind{
		Open: func(t testing.TB, address string, timeout time.Duration) transport.Client {
			return opened(t, clusterBehind(t, address, false), timeout)
		},
		Start:    func(t testing.TB) clienttest.Server { return startedOn(t, startCluster(t)) },
		OneWrite: true,
	})
}

func TestStoreOnCluster(t *testing.T) {
	t.Parallel()
	storetest.RunOn(t, startCluster, openCluster)
}

func TestLockersOnCluster(t *testing.T) {
	t.Parallel()
	locksite.Run(t, startCluster, openCluster)
}

// Processes take turns, on one server and on a cluster.
func TestTurns(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	storetest.Turns(t, func(t testing.TB) *store.Store { return openStore(t, at(server), patient) })
}

func TestTurnsOnCluster(t *testing.T) {
	t.Parallel()
	nodes := redistest.NewCluster(t, 3, 0).Nodes
	storetest.Turns(t, func(t testing.TB) *store.Store { return openStore(t, at(nodes...), patient) })
}

func startCluster(t testing.TB) *redistest.Server { return redistest.NewCluster(t, 1, 0).Nodes[0] }

// openCluster returns a client for what is behind a proxy of package redistest.
func openCluster(t testing.TB, address string, timeout time.Duration) transport.Client {
	return connected(t, clusterBehind(t, address, true), timeout)
}

// clusterBehind are options for a cluster of one node, which dial what leads to it. They name the
// node as it calls itself, or rueidis would soon close the connection to the other address, and say
// so to what leads there.
func clusterBehind(t testing.TB, address string, resp2 bool) rueidis.ClientOption {
	t.Helper()
	return rueidis.ClientOption{
		InitAddress: []string{ownAddress(t, address)},
		AlwaysRESP2: resp2,
		DialCtxFn: func(ctx context.Context, _ string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return d.DialContext(ctx, "tcp", address)
		},
	}
}

func ownAddress(t testing.TB, address string) string {
	t.Helper()
	conn, err := redis.Dial("tcp", address)
	if err != nil { // it is down
		return address
	}
	defer conn.Close()
	nodes, err := redis.String(conn.Do("CLUSTER", "NODES"))
	if err != nil {
		t.Fatal(err)
	}
	own, _, _ := strings.Cut(strings.Fields(nodes)[1], "@") // <id> <address>@<port of the bus> ...
	return own
}
