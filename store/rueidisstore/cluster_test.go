package rueidisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
)

// Two processes change sessions on all nodes of a cluster, and no change is lost.
func TestCluster(t *testing.T) {
	t.Parallel()
	nodes := redistest.NewCluster(t, 3, 0).Nodes
	a, b := openStore(t, at(nodes[0]), patient), openStore(t, at(nodes[1], nodes[2]), patient)
	const sessions, changes = 12, 10
	var all sync.WaitGroup
	for i := range sessions {
		id := fmt.Sprint("id-", i)
		create(t, a, id, "x")
		for _, st := range []*store.Store{a, b} {
			all.Go(func() {
				for range changes {
					h, err := st.Take(t.Context(), id, store.Terms{LockWait: time.Minute})
					if err != nil {
						t.Error(err)
						return
					}
					if err := h.Save(t.Context(), append(h.Record.Data, 'x')); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	for i := range sessions {
		wantData(t, b, fmt.Sprint("id-", i), strings.Repeat("x", 1+2*changes))
	}
	for _, n := range nodes {
		if len(n.Keys(t)) == 0 {
			t.Errorf("%s has none of the sessions", n.Addr)
		}
	}
}

// An exclusive request of a session that nobody else wants is two round trips on a cluster, too: as
// many writes to the network, and nothing is asked of a node that does not have the session.
func TestTwoRoundTrips(t *testing.T) {
	t.Parallel()
	nodes := redistest.NewCluster(t, 3, 0).Nodes
	var writes atomic.Int64
	o := at(nodes...)
	o.Dialer.KeepAlive = time.Hour // no PING
	o.DialCtxFn = func(ctx context.Context, address string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		conn, err := d.DialContext(ctx, "tcp", address)
		return counting{conn, &writes}, err
	}
	st := openStore(t, o, patient)
	const sessions = 9
	request := func(id string) {
		if err := save(t, st, id, "data"); err != nil {
			t.Error(err)
		}
	}
	for i := range sessions {
		create(t, st, fmt.Sprint("id-", i), "old")
		request(fmt.Sprint("id-", i)) // now all nodes know the scripts
	}
	before := writes.Load()
	for i := range sessions {
		request(fmt.Sprint("id-", i))
	}
	if n := writes.Load() - before; n != 2*sessions {
		t.Errorf("%d writes for %d requests", n, sessions)
	}
}

type counting struct {
	net.Conn
	writes *atomic.Int64
}

func (c counting) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// Slots move while nobody asks: the next exchange goes after them, all its commands in their order.
func TestMoved(t *testing.T) {
	t.Parallel()
	nodes := redistest.NewCluster(t, 3, 0).Nodes
	c := opened(t, at(nodes...), patient.Timeout)
	const key = "latchkey:{moved}"
	do(t, c, key, transport.Command{"SET", key, "1"})
	from, to := owner(t, nodes, key)
	for range 3 {
		migrate(t, from, to, nodes, key, func() {})
		from, to = to, from
		replies := do(t, c, key, transport.Command{"INCR", key}, transport.Command{"PING", "number"}, transport.Command{"INCR", key})
		if first, second := replies[0].(int64), replies[2].(int64); second != first+1 || string(replies[1].([]byte)) != "number" {
			t.Errorf("%v", replies)
		}
	}
	if got := do(t, c, key, transport.Command{"GET", key}); string(got[0].([]byte)) != "7" {
		t.Errorf("GET: %s", got)
	}
	if !c.IsCluster() {
		t.Error("it does not say that it is a cluster")
	}
}

// While a slot is being moved, its keys are found at either node, and what Redis puts off is its
// reply.
func TestAsk(t *testing.T) {
	t.Parallel()
	nodes := redistest.NewCluster(t, 3, 0).Nodes
	c := opened(t, at(nodes...), patient.Timeout)
	const here, there, none = "latchkey:{asked}", "latchkey:{asked}.lock", "latchkey:{asked}.queue"
	do(t, c, here, transport.Command{"MSET", here, "here", there, "there"})
	from, to := owner(t, nodes, here)
	migrate(t, from, to, nodes, there, func() { // the other key is still where it was
		for key, want := range map[string]string{here: "here", there: "there"} {
			got := do(t, c, key, transport.Command{"GET", key}, transport.Command{"PING"}, transport.Command{"STRLEN", key})
			if string(got[0].([]byte)) != want || got[2] != int64(len(want)) {
				t.Errorf("%s: %v", key, got)
			}
		}
		if got := do(t, c, here, transport.Command{"MGET", here, there, none})[0]; !strings.HasPrefix(fmt.Sprint(got), "TRYAGAIN") {
			t.Errorf("MGET: %v", got)
		}
	})
}

// do makes an exchange that must succeed.
func do(t testing.TB, c *client, key string, commands ...transport.Command) []any {
	t.Helper()
	replies, err := c.Do(t.Context(), key, commands...)
	if err != nil {
		t.Fatal(err)
	}
	return replies
}

// owner returns the node that has the slot of key, and another.
func owner(t testing.TB, nodes []*redistest.Server, key string) (owner, other *redistest.Server) {
	t.Helper()
	slot := number(t, nodes[0].Do(t, "CLUSTER", "KEYSLOT", key))
	for i, n := range nodes {
		if slot >= i*16384/len(nodes) && slot < (i+1)*16384/len(nodes) {
			return n, nodes[(i+1)%len(nodes)]
		}
	}
	panic("unreachable")
}

// migrate moves the slot of a key from one node to another, and the key at first. Meanwhile it
// calls f.
func migrate(t testing.TB, from, to *redistest.Server, nodes []*redistest.Server, key string, f func()) {
	t.Helper()
	slot := from.Do(t, "CLUSTER", "KEYSLOT", key)
	source, target := nodeID(t, from), nodeID(t, to)
	to.Do(t, "CLUSTER", "SETSLOT", slot, "IMPORTING", source)
	from.Do(t, "CLUSTER", "SETSLOT", slot, "MIGRATING", target)
	host, port, _ := net.SplitHostPort(to.Addr)
	from.Do(t, "MIGRATE", host, port, key, 0, 5000)
	f()
	keys, _ := redis.Strings(from.Do(t, "CLUSTER", "GETKEYSINSLOT", slot, 100), nil)
	for _, k := range keys {
		from.Do(t, "MIGRATE", host, port, k, 0, 5000)
	}
	to.Do(t, "CLUSTER", "SETSLOT", slot, "NODE", target)
	for _, n := range nodes {
		n.Do(t, "CLUSTER", "SETSLOT", slot, "NODE", target)
	}
}

func nodeID(t testing.TB, n *redistest.Server) string {
	t.Helper()
	id, err := redis.String(n.Do(t, "CLUSTER", "MYID"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// An address that leads nowhere, or into a hole, does not matter where another one works.
func TestDeadAddress(t *testing.T) {
	t.Parallel()
	nodes := redistest.NewCluster(t, 2, 0).Nodes
	for name, address := range map[string]string{"refused": "127.0.0.1:1", "silent": silent(t)} {
		o := at(nodes...)
		o.InitAddress = append([]string{address}, o.InitAddress...)
		st := openStore(t, o, patient)
		create(t, st, name, "data")
		wantData(t, st, name, "data")
	}
}

// silent is the address of a server that accepts connections and does nothing.
func silent(t testing.TB) string {
	s := redistest.Real(t)
	s.Pause(t)
	return s.Addr
}

// One node has another password, or is stopped: the sessions of the others are not concerned, and
// its own are errors that say why.
func TestOneNodeFails(t *testing.T) {
	t.Parallel()
	nodes := redistest.NewCluster(t, 3, 0).Nodes
	for i, n := range nodes {
		n.Do(t, "ACL", "SETUSER", "app", "on", fmt.Sprint(">", min(i, 1)), "~*", "&*", "+@all")
	}
	o := at(nodes[1])
	o.Username, o.Password = "app", "1"
	st := openStore(t, o, store.Options{Timeout: time.Second})
	ids := map[*redistest.Server]string{}
	for i := 0; len(ids) < len(nodes); i++ {
		id := fmt.Sprint("id-", i)
		n, _ := owner(t, nodes, "latchkey:{"+id+"}")
		ids[n] = id
	}
	succeeds := func(id string) bool {
		err := st.Create(t.Context(), id, []byte("data"), store.Terms{})
		return err == nil || strings.Contains(err.Error(), "exists")
	}
	eventually(t, "the others work", func() bool { return succeeds(ids[nodes[1]]) && succeeds(ids[nodes[2]]) })
	err := save(t, st, ids[nodes[0]], "data")
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("the wrong password: %v", err)
	}
	nodes[2].Pause(t)
	defer nodes[2].Resume(t)
	for range 3 {
		begun := time.Now()
		if err := save(t, st, ids[nodes[2]], "data"); !errors.Is(err, store.ErrUnavailable) || time.Since(begun) > 10*time.Second {
			t.Errorf("a node that is stopped: %v after %v", err, time.Since(begun))
		}
	}
	eventually(t, "another node works", func() bool { return save(t, st, ids[nodes[1]], "data") == nil })
}
