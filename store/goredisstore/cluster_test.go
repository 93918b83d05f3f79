package goredisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/locksite"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/internal/storetest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/a2139e8d/latchkey/locker/transport/clienttest"
	"github.com/a2139e8d/latchkey/store"
	"github.com/redis/go-redis/v9"
)

// A ClusterClient keeps all promises of a Client. The cluster has one node, so that all that can be
// done to a server is done to the cluster.
func TestClientOfCluster(t *testing.T) {
	t.Parallel()
	clienttest.Run(t, clienttest.Kind{
		Open: func(t testing.TB, address string, timeout time.Duration) transport.Client {
			return openCluster(t, address, timeout, 3)
		},
		Start:    func(t testing.TB) clienttest.Server { return startedOn(t, startCluster(t)) },
		OneWrite: true,
	})
}

// A store on a cluster keeps its promises.
func TestStoreOnCluster(t *testing.T) {
	t.Parallel()
	storetest.RunOn(t, startCluster, openClusterRESP2)
}

// All locks keep the promises of a Locker on a cluster.
func TestLockersOnCluster(t *testing.T) {
	t.Parallel()
	locksite.Run(t, startCluster, openClusterRESP2)
}

func openClusterRESP2(t testing.TB, address string, timeout time.Duration) transport.Client {
	return openCluster(t, address, timeout, 2)
}

func startCluster(t testing.TB) *redistest.Server { return redistest.NewCluster(t, 1, 0).Nodes[0] }

// openCluster returns a client of a cluster of one node, which dials what leads to it. The node
// itself would give it another address.
func openCluster(t testing.TB, address string, timeout time.Duration, protocol int) transport.Client {
	return newClient(t, redis.NewClusterClient(&redis.ClusterOptions{
		Addrs:                 []string{address},
		Protocol:              protocol,
		ContextTimeoutEnabled: true,
		ReadTimeout:           3 * patience, // only the deadline counts
		Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		},
	}), timeout)
}

// An exclusive request costs two round trips on a cluster, as it does on one server: take and read,
// write and release.
func TestRoundTripsOnCluster(t *testing.T) {
	t.Parallel()
	p := redistest.NewProxy(t, startCluster(t))
	st := store.NewOn(openCluster(t, p.Addr, patience, 2), store.Options{Timeout: patience})
	defer st.Close()
	if err := st.Create(t.Context(), "theID", []byte("0"), store.Terms{}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		p.Forget()
		h, err := st.Take(t.Context(), "theID", store.Terms{})
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Save(t.Context(), []byte("1")); err != nil {
			t.Fatal(err)
		}
		if n := p.RoundTrips(); i > 0 && n != 2 { // at first Redis has to learn the scripts
			t.Errorf("%d round trips: %q", n, p.Commands())
		}
	}
}

// Sessions of all slots are taken, saved and renewed to another slot.
func TestSessionsOfAllSlots(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, 0)
	st := newStore(t, redis.NewClusterClient(clusterOptions(c)))
	if err := st.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	for i := range 30 {
		id, next := fmt.Sprint("id", i), fmt.Sprint("next", i)
		if err := st.Create(t.Context(), id, []byte("1"), store.Terms{}); err != nil {
			t.Fatal(err)
		}
		h, err := st.Take(t.Context(), id, store.Terms{})
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Renew(t.Context(), next, []byte("2")); err != nil {
			t.Fatal(err)
		}
		if _, err := st.Load(t.Context(), id, store.Terms{}); !errors.Is(err, store.ErrGone) {
			t.Errorf("the old id: %v", err)
		}
		if r, err := st.Load(t.Context(), next, store.Terms{}); string(r.Data) != "2" || err != nil {
			t.Errorf("the new id: %q, %v", r.Data, err)
		}
	}
	for _, node := range c.Nodes {
		if len(node.Keys(t)) == 0 {
			t.Errorf("%s has no sessions", node.Addr)
		}
	}
}
