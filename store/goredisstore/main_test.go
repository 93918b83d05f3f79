package goredisstore

import (
	"context"
	"flag"
	"net"
	"os"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/clustertest"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/a2139e8d/latchkey/store"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

// patience is how long a round trip may take on a busy machine.
const patience = 20 * time.Second

var onCluster = flag.Bool("cluster", false, "also run the tests on clusters and with Sentinel")

func TestMain(m *testing.M) {
	logging.Disable() // it complains about faults that the tests cause
	flag.Parse()
	_ = flag.Set("test.parallel", "4") // most wait for servers
	os.Exit(m.Run())
}

// Tests on a real Redis are skipped if there is none. This test fails then, so that the skips are noticed.
func TestARealRedisIsInstalled(t *testing.T) {
	if err := redistest.Missing(); err != nil {
		t.Fatal(err)
	}
}

// open returns a client of one server, which speaks RESP3.
func open(t testing.TB, address string, timeout time.Duration) transport.Client {
	return openServer(t, clustertest.Way{Addresses: []string{address}}, timeout)
}

// openRESP2 is for servers behind a proxy of package redistest, which knows no RESP3.
func openRESP2(t testing.TB, address string, timeout time.Duration) transport.Client {
	return openServer(t, clustertest.Way{Addresses: []string{address}, RESP2: true}, timeout)
}

func openServer(t testing.TB, w clustertest.Way, timeout time.Duration) transport.Client {
	o := options(w)
	o.ReadTimeout = 3 * patience // only the deadline counts
	return newClient(t, redis.NewUniversalClient(o), timeout)
}

// openWay returns a client of a cluster, or of the master of sentinels.
func openWay(t testing.TB, w clustertest.Way, timeout time.Duration) transport.Client {
	o := options(w)
	if w.MasterSet != "" {
		return newClient(t, redis.NewFailoverClient(o.Failover()), timeout)
	}
	return newClient(t, redis.NewClusterClient(o.Cluster()), timeout)
}

func options(w clustertest.Way) *redis.UniversalOptions {
	o := &redis.UniversalOptions{
		Addrs: w.Addresses, MasterName: w.MasterSet, Username: w.User, Password: w.Password,
		ContextTimeoutEnabled: true,
	}
	if w.RESP2 {
		o.Protocol = 2
	}
	if w.Dial != nil {
		o.Dialer = func(ctx context.Context, _, address string) (net.Conn, error) { return w.Dial(ctx, address) }
	}
	return o
}

// newClient returns NewClient of c, which is closed when t ends.
func newClient(t testing.TB, c redis.UniversalClient, timeout time.Duration) transport.Client {
	t.Helper()
	t.Cleanup(func() { c.Close() })
	client, err := NewClient(c, timeout)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// newStore returns New of c. Both are closed when t ends.
func newStore(t testing.TB, c redis.UniversalClient, timeout time.Duration) *store.Store {
	t.Helper()
	t.Cleanup(func() { c.Close() })
	st, err := New(c, store.Options{Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

func at(servers ...*redistest.Server) redis.UniversalClient {
	o := &redis.UniversalOptions{ContextTimeoutEnabled: true}
	for _, s := range servers {
		o.Addrs = append(o.Addrs, s.Addr)
	}
	return redis.NewUniversalClient(o)
}
