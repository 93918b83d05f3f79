// Package clustertest checks what a client of Redis Cluster, or of Sentinel, does by itself: it follows
// slots that move, and a master that is replaced.
//
// Most checks share one cluster, one after another, since a cluster takes two seconds to start. Each
// check uses its own slots and sessions.
package clustertest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/internal/storetest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/a2139e8d/latchkey/locker/transport/clienttest"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
)

// A Way is how a client gets to Redis. Zero fields mean the client's defaults.
type Way struct {
	Addresses      []string // of nodes, or of sentinels
	MasterSet      string   // the sentinels' name of the master; "": it is a cluster
	User, Password string
	RESP2          bool // the protocol of package redistest's proxies
	Dial           func(ctx context.Context, address string) (net.Conn, error)
}

// An Open returns a client, and closes it when t ends. Each round trip takes at most timeout.
type Open func(t testing.TB, w Way, timeout time.Duration) transport.Client

// patience is how long a round trip may take on a busy machine.
const patience = 20 * time.Second

// A site is a cluster of three masters with slots, and one without.
type site struct {
	*testing.T
	*redistest.Cluster
	open  Open
	spare *redistest.Server // has no slots
}

// Run checks all promises. rights are the least rights that a Redis user needs, as ACL SETUSER expects
// them. more are the client's own checks on the same cluster.
func Run(t *testing.T, open Open, rights []any, more map[string]func(t *testing.T, c *redistest.Cluster)) {
	t.Run("one node", func(t *testing.T) {
		t.Parallel()
		oneNode(t, open)
	})
	t.Run("failover", func(t *testing.T) {
		t.Parallel()
		masterIsReplaced(t, open)
	})
	t.Run("Sentinel", func(t *testing.T) {
		t.Parallel()
		sentinel(t, open)
	})
	t.Run("three nodes", func(t *testing.T) {
		t.Parallel()
		c := redistest.NewCluster(t, 3, 0)
		spare := c.Add(t)
		for name, check := range map[string]func(*site){
			"ExchangeGoesToItsNode":  exchangeGoesToItsNode,
			"SlotHasMoved":           slotHasMoved,
			"SlotIsMoving":           slotIsMoving,
			"RedirectionsAreBounded": redirectionsAreBounded,
			"SubscribeShard":         subscribeShard,
			"SubscribeOnAnyNode":     subscribeOnAnyNode,
			"SessionsOfAllSlots":     sessionsOfAllSlots,
			"TwoRoundTrips":          twoRoundTrips,
			"Streams":                streamsOnAllNodes,
			"Turns":                  turns,
			"LeastRights":            func(s *site) { leastRights(s, rights) },
			"DeadAddresses":          deadAddresses,
			"OneNodeFails":           oneNodeFails,
		} {
			t.Run(name, func(t *testing.T) { check(&site{t, c, open, spare}) })
		}
		for name, check := range more {
			t.Run(name, func(t *testing.T) { check(t, c) })
		}
	})
}

// oneNode runs the suites of the packages that use a client on clusters of one node, so that everything
// that can be done to a server is done to the cluster.
func oneNode(t *testing.T, open Open) {
	lent := &lender{TB: t}
	through := func(t testing.TB, address string, timeout time.Duration, resp2 bool) transport.Client {
		return open(t, Way{Addresses: []string{nameOf(t, address)}, RESP2: resp2,
			Dial: func(ctx context.Context, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", address)
			}}, timeout)
	}
	t.Run("Client", func(t *testing.T) {
		t.Parallel()
		clienttest.Run(t, clienttest.Kind{
			Open: func(t testing.TB, address string, timeout time.Duration) transport.Client {
				return through(t, address, timeout, false)
			},
			Start:    func(t testing.TB) clienttest.Server { return Server(t, lent.get(t)) },
			OneWrite: true,
		})
	})
	t.Run("Store", func(t *testing.T) {
		t.Parallel()
		storetest.RunOn(t, lent.get, func(t testing.TB, address string, timeout time.Duration) transport.Client {
			return through(t, address, timeout, true)
		})
	})
}

// A lender lends clusters of one node, which end with TB.
type lender struct {
	testing.TB

	mu   sync.Mutex // guards all below
	idle []*redistest.Cluster
}

// get returns the node of an empty cluster, for t alone until t ends.
func (l *lender) get(t testing.TB) *redistest.Server {
	redistest.Binary(t) // skips t, not TB, if there is no server
	l.mu.Lock()
	var c *redistest.Cluster
	if last := len(l.idle) - 1; last >= 0 {
		c, l.idle = l.idle[last], l.idle[:last]
	}
	l.mu.Unlock()
	if c == nil {
		c = redistest.NewCluster(l, 1, 0)
	}
	node := c.Nodes[0]
	t.Cleanup(func() {
		if !node.Answers(t) { // the check has stopped or paused the node
			node.Restart(t)
		}
		node.Do(t, "CONFIG", "SET", "maxmemory", 0)
		c.AwaitReady(t)
		node.Do(t, "FLUSHALL")
		l.mu.Lock()
		defer l.mu.Unlock()
		l.idle = append(l.idle, c)
	})
	return node
}

// nameOf returns the address that the node behind another address gives as its own. A client may learn that name,
// and use it instead.
func nameOf(t testing.TB, address string) string {
	t.Helper()
	conn, err := redis.Dial("tcp", address)
	if err != nil { // the node is down
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

// Server wraps a server of package redistest for package clienttest.
func Server(t testing.TB, s *redistest.Server) clienttest.Server {
	return clienttest.Server{
		Address: s.Addr,
		Stop:    func() { s.Stop(t) },
		Restart: func() { s.Restart(t) },
		Pause:   func() { s.Pause(t) },
		Resume:  func() { s.Resume(t) },
	}
}

// first returns the first of the masters. The masters keep most of their slots.
func (s *site) first() *redistest.Server  { return s.Nodes[0] }
func (s *site) second() *redistest.Server { return s.Nodes[1] }
func (s *site) third() *redistest.Server  { return s.Nodes[2] }

// idOf returns the ID of a session at a node that no other check uses.
func (s *site) idOf(node *redistest.Server) string {
	s.Helper()
	slots := s.SlotsOf(s.T, node)
	for n := 0; ; n++ {
		if id := fmt.Sprintf("%s-%d", s.Name(), n); slices.Contains(slots, s.Slot(s.T, "{"+id+"}")) {
			return id
		}
	}
}

// keyOf returns a key at a node.
func (s *site) keyOf(node *redistest.Server) string { return "{" + s.idOf(node) + "}" }

func at(nodes ...*redistest.Server) (w Way) {
	for _, node := range nodes {
		w.Addresses = append(w.Addresses, node.Addr)
	}
	return w
}

// client returns a client that knows all nodes.
func (s *site) client() transport.ClusterClient {
	s.Helper()
	return s.open(s.T, at(s.Nodes...), patience).(transport.ClusterClient)
}

// store returns the store of a process.
func (s *site) store(w Way) *store.Store {
	s.Helper()
	return newStore(s.T, s.open, w, patience)
}

func newStore(t testing.TB, open Open, w Way, timeout time.Duration) *store.Store {
	t.Helper()
	st := store.NewOn(open(t, w, timeout), store.Options{Lease: time.Minute, Timeout: timeout})
	if err := records.Of(st).Err(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// exchange makes a round trip that must succeed, and returns its replies as text.
func exchange(t testing.TB, client transport.Client, key string, commands ...transport.Command) string {
	t.Helper()
	replies, err := client.Do(t.Context(), key, commands...)
	if err != nil {
		t.Fatalf("%v: %v", commands, err)
	}
	return text(replies)
}

func text(reply any) string {
	switch r := reply.(type) {
	case []any:
		all := make([]string, len(r))
		for i, one := range r {
			all[i] = text(one)
		}
		return "[" + strings.Join(all, " ") + "]"
	case []byte:
		return string(r)
	case nil:
		return "nil"
	default:
		return fmt.Sprint(r)
	}
}
