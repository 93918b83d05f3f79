package locker

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/gomodule/redigo/redis"
)

// nodesOf starts n Redis servers, and returns a pool for each.
func nodesOf(t *testing.T, n int, start func(testing.TB) *redistest.Server) ([]*redistest.Server, []*redis.Pool) {
	var servers []*redistest.Server
	for range n {
		servers = append(servers, start(t))
	}
	return servers, poolsOf(t, servers)
}

// poolsOf returns what one process has: a pool for each server.
func poolsOf(t *testing.T, servers []*redistest.Server) (pools []*redis.Pool) {
	for _, server := range servers {
		pools = append(pools, server.Pool(t, 8))
	}
	return pools
}

// unhurried are options for tests in which no node is meant to be late.
var unhurried = Options{Lease: time.Minute, Wait: time.Minute, Timeout: 15 * s}

// What is wrong with the arguments is said by every Lock, and names the rule.
func TestRedlockRefusesBadArguments(t *testing.T) {
	t.Parallel()
	pool := func() *redis.Pool { return &redis.Pool{} }
	one := pool()
	three := []*redis.Pool{pool(), pool(), pool()}
	for rule, tt := range map[string]struct {
		pools   []*redis.Pool
		options Options
	}{
		"0 nodes: it must be an odd number":                        {nil, Options{}},
		"2 nodes: it must be an odd number":                        {three[:2], Options{}},
		"node 2 is nil":                                            {[]*redis.Pool{pool(), nil, pool()}, Options{}},
		"node 3: it is the same Redis as node 1":                   {[]*redis.Pool{one, pool(), one}, Options{}},
		"Options.Timeout is 26ms, and Lease or MaxHold 100ms: a":   {three, Options{Lease: s / 10, Timeout: 26 * time.Millisecond}},
		"Options.Timeout is 1s, and Lease or MaxHold 3s: a node":   {three, Options{MaxHold: 3 * s, Timeout: s}},
		"Options.Lease or MaxHold is 9ms: it must be at least 10m": {three, Options{Lease: 9 * time.Millisecond}},
		"Options.Lease or MaxHold is 8ms: it must be at least 10m": {three, Options{MaxHold: 8 * time.Millisecond}},
		"Options.Lease is -1s: it must be at least 1ms":            {three, Options{Lease: -s}},
		"Options.MaxHold is -1s: it must be at least 1ms":          {three, Options{MaxHold: -s}},
		"Options.Timeout is -1s: it must be at least 1ms":          {three, Options{Timeout: -s}},
		"Options.Wait is -1s: it must not be negative":             {three, Options{Wait: -s}},
	} {
		lock := NewRedlock(tt.pools, tt.options)
		for range 2 {
			_, err := lock.Lock(t.Context(), "k")
			if err == nil || !strings.HasPrefix(err.Error(), "locker: Redlock: ") || !strings.Contains(err.Error(), rule) {
				t.Errorf("error %v, want %q", err, rule)
			}
		}
	}
}

// The same for the nodes of any client.
func TestRedlockOnRefusesBadNodes(t *testing.T) {
	t.Parallel()
	node := transport.NewRedigo(&redis.Pool{}, s)
	t.Cleanup(func() { node.Close() })
	for rule, nodes := range map[string][]transport.Client{
		"0 nodes: it must be an odd number": nil,
		"2 nodes: it must be an odd number": {node, node},
		"node 3 is nil":                     {node, node, nil},
	} {
		_, err := NewRedlockOn(nodes, Options{}).Lock(t.Context(), "k")
		if err == nil || !strings.HasPrefix(err.Error(), "locker: Redlock: "+rule) {
			t.Errorf("error %v, want %q", err, rule)
		}
	}
}

// A node may take a fiftieth of a lease, but not so little that a busy one fails;
// and tries are further apart than those of a lock on one Redis.
func TestRedlockDefaults(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, tt := range []struct {
		options Options
		timeout time.Duration
	}{
		{Options{}, 200 * ms},
		{Options{Lease: time.Minute}, 1200 * ms},
		{Options{Lease: time.Minute, MaxHold: 5 * s}, 100 * ms},
		{Options{Lease: 100 * ms}, 10 * ms},
		{Options{Lease: 12 * ms}, 3 * ms}, // never over a quarter
		{Options{Lease: s, Timeout: 250 * ms}, 250 * ms},
	} {
		r := NewRedlock([]*redis.Pool{{}}, tt.options)
		if r.lock.err != nil || r.timeout != tt.timeout {
			t.Errorf("%+v: Timeout %v, %v", tt.options, r.timeout, r.lock.err)
		}
		if want := (lease.Backoff{Min: 10 * ms, Max: 200 * ms}); r.lock.options.Backoff != want {
			t.Errorf("Backoff %+v", r.lock.options.Backoff)
		}
	}
}

// The same Redis by two addresses would have two votes. Nobody can see that in
// the pools, but the first Lock finds out, and leaves nothing behind.
func TestRedlockMeetsARedisTwice(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		other := redistest.Embedded(t)
		again := redistest.NewProxy(t, server)
		lock := NewRedlock([]*redis.Pool{server.Pool(t, 4), other.Pool(t, 4), again.Pool(t, 4)}, unhurried)
		for range 3 {
			_, err := lock.Lock(t.Context(), "k")
			if !errors.Is(err, errSameNode) || errors.Is(err, ErrUnavailable) {
				t.Fatalf("error %v", err)
			}
			// Which of the two is asked first is a matter of chance.
			if text := err.Error(); !strings.HasSuffix(text, "for k: node 3: it is the same Redis as node 1") &&
				!strings.HasSuffix(text, "for k: node 1: it is the same Redis as node 3") {
				t.Errorf("the message is %q", err)
			}
			if left := append(server.Keys(t), other.Keys(t)...); len(left) != 0 {
				t.Errorf("left behind: %q", left)
			}
		}
	})
}

// While another has the lock, a Redis that is there twice just says no twice. It
// is found out once the lock is free.
func TestRedlockMeetsABusyRedisTwice(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		other := redistest.Embedded(t)
		again := redistest.NewProxy(t, server)
		o := unhurried
		o.Wait = NoWait
		lock := NewRedlock([]*redis.Pool{server.Pool(t, 4), again.Pool(t, 4), other.Pool(t, 4)}, o)
		server.Do(t, "SET", "k", "another", "PX", 60_000)
		other.Do(t, "SET", "k", "another", "PX", 60_000)
		if _, err := lock.Lock(t.Context(), "k"); !errors.Is(err, ErrTimeout) {
			t.Errorf("while another has it: %v", err)
		}
		server.Do(t, "DEL", "k")
		other.Do(t, "DEL", "k")
		if _, err := lock.Lock(t.Context(), "k"); !errors.Is(err, errSameNode) {
			t.Errorf("when it is free: %v", err)
		}
	})
}

// On each node the lock is a key of the same name, with a token of the node's own.
// The names of the holder are in it, as with a lock on one Redis.
func TestRedlockKeys(t *testing.T) {
	t.Parallel()
	servers, pools := nodesOf(t, 5, redistest.Embedded)
	lock := NewRedlock(pools, unhurried)
	l, err := lock.Lock(WithLabel(t.Context(), "GET /a:b"), "k")
	if err != nil {
		t.Fatal(err)
	}
	for node, server := range servers {
		token, _ := server.Get(t, "k")
		n, rest := cutNode(token)
		if n != node || rest != (*lease.Lease)(l).Token() || !strings.HasSuffix(rest, " GET /a:b") {
			t.Errorf("node %d holds %q", node+1, token)
		}
		if ttl, _ := redis.Int64(server.Do(t, "PTTL", "k"), nil); ttl <= 50_000 || ttl > 60_000 {
			t.Errorf("on node %d it lasts for %d ms", node+1, ttl)
		}
	}
	mustExtend(t, l)
	mustUnlock(t, l)
	for _, server := range servers { // those beyond the majority take a moment more
		eventually(t, "release everywhere", func() bool { return !server.Exists(t, "k") })
	}
}

// Somebody else's keys, on most nodes, are no lock of ours, and stay as they are.
func TestRedlockForeignKeys(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		put     []any
		timeout bool // it looks like a lock, that may end
	}{
		"of another type":   {[]any{"LPUSH", "k", "value"}, false},
		"a string":          {[]any{"SET", "k", "12:30 o'clock"}, true},
		"a string, no node": {[]any{"SET", "k", "value"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers, pools := nodesOf(t, 3, redistest.Embedded)
			o := unhurried
			o.Wait = NoWait
			for _, server := range servers[:2] {
				server.Do(t, tt.put[0].(string), tt.put[1:]...)
			}
			_, err := NewRedlock(pools, o).Lock(t.Context(), "k")
			if !errors.Is(err, ErrForeign) || errors.Is(err, ErrTimeout) != tt.timeout {
				t.Errorf("error %v", err)
			}
			if !servers[0].Exists(t, "k") || !servers[1].Exists(t, "k") {
				t.Error("somebody else's key was removed")
			}
			eventually(t, "release", func() bool { return !servers[2].Exists(t, "k") })
		})
	}
}

// Whoever waits for the lock learns who has it: from a Redlock as from a Spin.
func TestRedlockTellsTheOwner(t *testing.T) {
	t.Parallel()
	servers, pools := nodesOf(t, 3, redistest.Embedded)
	l, err := NewRedlock(pools, unhurried).Lock(WithLabel(t.Context(), "POST /cart:add"), "k")
	if err != nil {
		t.Fatal(err)
	}
	defer mustUnlock(t, l)
	o := unhurried
	o.Wait = NoWait
	for name, other := range map[string]Locker{
		"Redlock": NewRedlock(pools, o),
		"Spin":    NewSpin(servers[1].Pool(t, 1), o),
	} {
		_, err := other.Lock(t.Context(), "k")
		held, ok := errors.AsType[*HeldError](err)
		if !ok || held.Owner.Label != "POST /cart:add" || held.Owner.PID != os.Getpid() {
			t.Errorf("%s: %v", name, err)
		}
	}
}
