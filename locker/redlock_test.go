package locker

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/gomodule/redigo/redis"
)

// nodesLike returns n servers, of which the first is server and the others are of its kind, and a pool for each.
func nodesLike(t *testing.T, server *redistest.Server, n int) ([]*redistest.Server, []*redis.Pool) {
	servers := []*redistest.Server{server}
	for len(servers) < n {
		servers = append(servers, server.Another(t))
	}
	return servers, poolsOf(t, servers)
}

// poolsOf returns the pools of one process: one for each server.
func poolsOf(t *testing.T, servers []*redistest.Server) (pools []*redis.Pool) {
	for _, server := range servers {
		pools = append(pools, server.Pool(t, 8))
	}
	return pools
}

// noneLeft checks that nothing is locked any more.
func noneLeft(t *testing.T, servers []*redistest.Server) {
	t.Helper()
	for i, server := range servers {
		if keys := server.Keys(t); len(keys) > 0 {
			t.Errorf("left behind on node %d: %q", i+1, keys)
		}
	}
}

// Every Lock returns what is wrong with the constructor's arguments, and names the rule.
func TestRedlockRefusesBadArguments(t *testing.T) {
	t.Parallel()
	one := &redis.Pool{}
	three := []*redis.Pool{one, {}, {}}
	node := transport.NewRedigo(&redis.Pool{}, s)
	t.Cleanup(func() { node.Close() })
	for rule, lock := range map[string]*Redlock{
		"no nodes: there must be an odd number of them": NewRedlock(nil, Options{}),
		"2 nodes: it must be an odd number":             NewRedlock(three[:2], Options{}),
		"2 nodes: it must be an odd number, since":      NewRedlockOn([]transport.Client{node, node}, Options{}),
		"node 2 is nil":                          NewRedlock([]*redis.Pool{{}, nil, {}}, Options{}),
		"node 3 is nil":                          NewRedlockOn([]transport.Client{node, node, nil}, Options{}),
		"node 3: it is the same Redis as node 1": NewRedlock([]*redis.Pool{one, {}, one}, Options{}),
		"Options.Timeout is 26ms, and Lease or MaxHold 100ms: a":   NewRedlock(three, Options{Lease: s / 10, Timeout: 26 * time.Millisecond}),
		"Options.Timeout is 1s, and Lease or MaxHold 3s: a node":   NewRedlock(three, Options{MaxHold: 3 * s, Timeout: s}),
		"Options.Lease or MaxHold is 9ms: it must be at least 10m": NewRedlock(three, Options{Lease: 9 * time.Millisecond}),
		"Options.Lease or MaxHold is 2ms: it must be at least 10m": NewRedlock(three, Options{Lease: 2 * time.Millisecond}), // not that Timeout is wrong
		"Options.Lease or MaxHold is 8ms: it must be at least 10m": NewRedlock(three, Options{MaxHold: 8 * time.Millisecond}),
		"Options.Wait is -1s: it must not be negative":             NewRedlock(three, Options{Wait: -s}),
	} {
		for range 2 {
			_, err := lock.Lock(t.Context(), "k")
			if err == nil || !strings.HasPrefix(err.Error(), "locker: Redlock: "+rule) {
				t.Errorf("error %v, want %q", err, rule)
			}
		}
	}
}

// A silent node may take a fiftieth of a lease, but at least so much that a busy node succeeds. The pauses
// between tries are longer than those of a lock on one Redis.
func TestRedlockDefaults(t *testing.T) {
	const ms = time.Millisecond
	inFakeTime(t, func(t *testing.T, server *redistest.Server) {
		servers, pools := nodesLike(t, server, 3)
		for i, tt := range []struct {
			options Options
			timeout time.Duration
		}{
			{Options{}, 200 * ms},
			{Options{Lease: time.Minute}, 1200 * ms},
			{Options{Lease: time.Minute, MaxHold: 5 * s}, 100 * ms},
			{Options{Lease: 100 * ms}, 10 * ms},
			{Options{Lease: 12 * ms}, 3 * ms}, // never more than a quarter
			{Options{Lease: s, Timeout: 250 * ms}, 250 * ms},
		} {
			lock := NewRedlock(pools, tt.options)
			servers[i%3].Pause(t)
			begin := time.Now()
			l := mustLock(t, lock)
			wantTook(t, "Lock", begin, tt.timeout)
			mustUnlock(t, l)
			servers[i%3].Resume(t)
			redistest.Elapse(2 * time.Minute)
		}
		server.Do(t, "SET", "k", "another")
		proxy := redistest.NewProxy(t, server)
		_, err := NewRedlock([]*redis.Pool{proxy.Pool(t, 1)}, Options{}).Lock(t.Context(), "k")
		if n := proxy.Requests() / 2; !errors.Is(err, ErrTimeout) || n < 50 || n > 110 { // a Take and a Release each
			t.Errorf("%d tries in 10s: %v", n, err)
		}
	})
}

// One Redis with two addresses would have two votes. The pools do not show that, but Lock finds out once the lock
// is free, and leaves nothing behind.
func TestRedlockMeetsARedisTwice(t *testing.T) {
	inFakeTime(t, func(t *testing.T, server *redistest.Server) {
		other := server.Another(t)
		again := redistest.NewProxy(t, server)
		lock := NewRedlock([]*redis.Pool{server.Pool(t, 4), other.Pool(t, 4), again.Pool(t, 4)}, noWait())
		for _, node := range []*redistest.Server{server, other} {
			node.Do(t, "SET", "k", "another", "PX", 10_000)
		}
		if _, err := lock.Lock(t.Context(), "k"); !errors.Is(err, ErrTimeout) {
			t.Errorf("while another has it: %v", err)
		}
		redistest.Elapse(11 * s)
		for range 3 {
			_, err := lock.Lock(t.Context(), "k")
			if !errors.Is(err, errSameNode) || errors.Is(err, ErrUnavailable) {
				t.Fatalf("error %v", err)
			}
			// Chance decides which of the two is asked first.
			if text := err.Error(); !strings.HasSuffix(text, "for k: node 3: it is the same Redis as node 1") &&
				!strings.HasSuffix(text, "for k: node 1: it is the same Redis as node 3") {
				t.Errorf("the message is %q", err)
			}
			noneLeft(t, []*redistest.Server{server, other})
		}
	})
}

// Keys of another program, on most nodes, are no lock of ours, and stay as they are.
func TestRedlockForeignKeys(t *testing.T) {
	inFakeTime(t, func(t *testing.T, server *redistest.Server) {
		servers, pools := nodesLike(t, server, 3)
		for _, tt := range []struct {
			put     []any
			timeout bool // it looks like a lock, which may end
		}{
			{[]any{"LPUSH", "k", "value"}, false},
			{[]any{"SET", "k", "12:30 o'clock"}, true},
			{[]any{"SET", "k", "value"}, true},
		} {
			for _, server := range servers[:2] {
				server.Do(t, "DEL", "k")
				server.Do(t, tt.put[0].(string), tt.put[1:]...)
			}
			_, err := NewRedlock(pools, noWait()).Lock(t.Context(), "k")
			if !errors.Is(err, ErrForeign) || errors.Is(err, ErrTimeout) != tt.timeout {
				t.Errorf("%q: error %v", tt.put, err)
			}
			redistest.Elapse(s)
			if !servers[0].Exists(t, "k") || !servers[1].Exists(t, "k") || servers[2].Exists(t, "k") {
				t.Errorf("%q: somebody else's key was removed, or the third node's was not", tt.put)
			}
		}
	})
}

// chaotic are options for nodes that fail.
var chaotic = Options{Lease: 2 * s, MaxHold: time.Minute, Wait: 3 * s, Timeout: s / 4}

// harm kills or freezes a node, again and again, until ctx ends. A killed node has lost its data, so it stays
// away for a lease, as it must.
func harm(ctx context.Context, t *testing.T, random *rand.Rand, victim *redistest.Server) {
	within := func(least, most time.Duration) time.Duration {
		return least + time.Duration(random.Int64N(int64(most-least)))
	}
	for ctx.Err() == nil {
		spend(within(0, s/2))
		if random.IntN(3) == 0 {
			victim.Stop(t)
			spend(chaotic.Lease + s/10)
			victim.Restart(t)
		} else {
			victim.Pause(t)
			spend(within(s/100, s))
			victim.Resume(t)
		}
	}
}

// Any two of five nodes may be killed or frozen, at any moment, while callers of several processes acquire the
// lock. There are never two holders. No caller waits longer than Wait, plus the round trip that is under way at
// the end, and its release.
func TestRedlockSurvivesTwoOfFive(t *testing.T) {
	inFakeTime(t, func(t *testing.T, server *redistest.Server) {
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 0))
		defer func() {
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		}()
		servers, _ := nodesLike(t, server, 5)
		ctx, stop := context.WithTimeout(t.Context(), 6*s)
		defer stop()
		var inside, n atomic.Int64
		for range 3 {
			lock := NewRedlock(poolsOf(t, servers), chaotic)
			for range 3 {
				go func() {
					for ctx.Err() == nil {
						begin := time.Now()
						l, err := lock.Lock(t.Context(), "k")
						if took := time.Since(begin); took > chaotic.Wait+2*chaotic.Timeout {
							t.Errorf("Lock took %v: %v", took, err)
						}
						if err != nil {
							if !errors.Is(err, ErrTimeout) {
								t.Errorf("Lock with at most two nodes away: %v", err)
							}
							continue
						}
						if inside.Add(1) != 1 {
							t.Error("two callers have the lock")
						}
						spend(s / 20)
						inside.Add(-1)
						n.Add(1)
						if err := l.Unlock(t.Context()); errors.Is(err, ErrLost) {
							t.Errorf("another took the lock from its holder: %v", err)
						}
					}
				}()
			}
		}
		for _, i := range random.Perm(5)[:2] {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			go harm(ctx, t, random, servers[i])
		}
		redistest.Elapse(time.Minute)
		if n.Load() < 20 {
			t.Errorf("%d locks", n.Load())
		}
		noneLeft(t, servers) // nothing outlasts its lease
	})
}
