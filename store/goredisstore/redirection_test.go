package goredisstore

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/redis/go-redis/v9"
)

// patience is how long an exchange may take on a busy machine.
const patience = 20 * time.Second

func clusterOptions(c *redistest.Cluster) *redis.ClusterOptions {
	o := &redis.ClusterOptions{ContextTimeoutEnabled: true}
	for _, node := range c.Nodes {
		o.Addrs = append(o.Addrs, node.Addr)
	}
	return o
}

// keyOf returns a key whose slot a node has.
func keyOf(t *testing.T, c *redistest.Cluster, node *redistest.Server) string {
	t.Helper()
	for n := 0; ; n++ {
		if key := fmt.Sprintf("{%d}", n); c.Owner(t, c.Slot(t, key)) == node {
			return key
		}
	}
}

func do(t *testing.T, client transport.Client, key string, commands ...transport.Command) []any {
	t.Helper()
	replies, err := client.Do(t.Context(), key, commands...)
	if err != nil {
		t.Fatalf("%v: %v", commands, err)
	}
	return replies
}

// executed returns how often a node has executed a command, or refused it: calls, rejected_calls.
func executed(t *testing.T, node *redistest.Server, command, how string) int {
	t.Helper()
	for line := range strings.Lines(fmt.Sprintf("%s", node.Do(t, "INFO", "commandstats"))) {
		if stats, ok := strings.CutPrefix(line, "cmdstat_"+command+":"); ok {
			_, stats, _ = strings.Cut(","+stats, ","+how+"=")
			digits, _, _ := strings.Cut(strings.TrimSpace(stats), ",")
			n, err := strconv.Atoi(digits)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	return 0
}

// All commands of an exchange go to the node that has its slot, also one that has no key, and a
// script whose first key is not its first argument.
func TestExchangeGoesToItsNode(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, 0)
	client := newClient(t, redis.NewClusterClient(clusterOptions(c)), patience)
	for _, node := range c.Nodes {
		key := keyOf(t, c, node)
		for i := range 20 {
			replies := do(t, client, key,
				transport.Command{"SET", key, i},
				transport.Command{"ECHO", int64(i)},
				transport.Command{"EVAL", "return redis.call('GET', KEYS[1])", 1, key, "another"},
				transport.Command{"EVAL", "return ARGV[1]", 0, "no key"},
				transport.Command{"MGET", key, key + "none"})
			if got, want := fmt.Sprint(replies), fmt.Sprintf("[OK %d %d no key [%d <nil>]]", i, i, i); got != want {
				t.Fatalf("%s, want %s", got, want)
			}
		}
		if got := executed(t, node, "echo", "calls"); got != 20 {
			t.Errorf("%s has executed ECHO %d times", node.Addr, got)
		}
	}
}

// Once a slot has moved, the first exchange is redirected, to where its commands are executed once,
// in their order.
func TestSlotHasMoved(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 2, 0)
	key := keyOf(t, c, c.Nodes[0])
	client := newClient(t, redis.NewClusterClient(clusterOptions(c)), patience)
	for i, to := range []*redistest.Server{c.Nodes[1], c.Nodes[0], c.Nodes[1]} {
		do(t, client, key, transport.Command{"SET", key, i})
		c.Move(t, c.Slot(t, key), to)
		replies := do(t, client, key,
			transport.Command{"PING", "n"},
			transport.Command{"APPEND", key, "a"},
			transport.Command{"APPEND", key, "b"},
			transport.Command{"GET", key})
		if got, want := fmt.Sprint(replies), fmt.Sprintf("[n 2 3 %dab]", i); got != want {
			t.Errorf("move %d: %s, want %s", i, got, want)
		}
	}
}

// While a slot is being moved, what is there already is at the old node, and the rest at the new one,
// which go-redis may not know: it has no slots yet.
func TestSlotIsMoving(t *testing.T) {
	t.Parallel()
	for name, used := range map[string]bool{"a new client": false, "a client in use": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := redistest.NewCluster(t, 2, 0)
			key := keyOf(t, c, c.Nodes[0])
			rdb := redis.NewClusterClient(clusterOptions(c))
			if used {
				if err := rdb.Ping(t.Context()).Err(); err != nil {
					t.Fatal(err)
				}
			}
			client := newClient(t, rdb, patience)
			here, there := key+"here", key+"there"
			do(t, client, key, transport.Command{"SET", here, "v"})
			for _, to := range []*redistest.Server{c.Nodes[1], c.Add(t)} {
				c.BeginMove(t, c.Slot(t, key), to)
				for i := range 3 {
					replies := do(t, client, here, transport.Command{"PING", "n"}, transport.Command{"GET", here})
					if got := fmt.Sprint(replies); got != "[n v]" {
						t.Errorf("at the old node: %s", got)
					}
					replies = do(t, client, there, transport.Command{"PING", "n"}, transport.Command{"INCR", there},
						transport.Command{"INCR", there})
					if got, want := fmt.Sprint(replies), fmt.Sprintf("[n %d %d]", 2*i+1, 2*i+2); got != want {
						t.Errorf("at the new node: %s, want %s", got, want)
					}
				}
				c.Nodes[0].Do(t, "CLUSTER", "SETSLOT", c.Slot(t, key), "STABLE")
			}
		})
	}
}

// An exchange of which a part was executed is not redirected: what was executed would be done
// twice, and in another order.
func TestHalfOfAnExchangeIsRedirected(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 2, 0)
	key := keyOf(t, c, c.Nodes[0])
	client := newClient(t, redis.NewClusterClient(clusterOptions(c)), patience)
	here, there := key+"here", key+"there"
	do(t, client, key, transport.Command{"SET", here, 1})
	m := c.BeginMove(t, c.Slot(t, key), c.Nodes[1])
	replies := do(t, client, key,
		transport.Command{"INCR", here},
		transport.Command{"INCR", there},
		transport.Command{"EVAL", "return 1", 2, here, there})
	refusals := fmt.Sprint(replies[1:])
	if replies[0] != int64(2) || !strings.Contains(refusals, "ASK ") || !strings.Contains(refusals, "TRYAGAIN ") {
		t.Errorf("replies: %v", replies)
	}
	c.FinishMove(t, m)
	if got := fmt.Sprint(do(t, client, key, transport.Command{"MGET", here, there})); got != "[[2 <nil>]]" {
		t.Errorf("executed was %s", got)
	}
}

// Two nodes that say of each other that they have the slot do not keep an exchange for ever.
func TestRedirectionsAreBounded(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 2, 0)
	key := keyOf(t, c, c.Nodes[0])
	client := newClient(t, redis.NewClusterClient(clusterOptions(c)), patience)
	c.Nodes[0].Do(t, "CLUSTER", "SETSLOT", c.Slot(t, key), "NODE", c.ID(t, c.Nodes[1]))
	refusal, _ := do(t, client, key, transport.Command{"GET", key})[0].(error)
	if refusal == nil || !strings.HasPrefix(refusal.Error(), "MOVED ") {
		t.Errorf("the reply is %v", refusal)
	}
	tries := executed(t, c.Nodes[0], "get", "rejected_calls") + executed(t, c.Nodes[1], "get", "rejected_calls")
	if tries != 5 {
		t.Errorf("it was sent %d times", tries)
	}
}

// An exchange follows a redirection that all its commands agree on. PING has no key, and goes along.
func TestRedirected(t *testing.T) {
	t.Parallel()
	three := []transport.Command{{"SET", "k", "v"}, {"PING", 1}, {"GET", "k"}}
	moved, ask, elsewhere := errors.New("MOVED 1 a:1"), errors.New("ASK 1 a:1"), errors.New("MOVED 1 b:1")
	for name, tt := range map[string]struct {
		replies []any
		want    redirection
	}{
		"moved":             {[]any{moved, "1", moved}, redirection{"a:1", false}},
		"asked":             {[]any{ask, "1", ask}, redirection{"a:1", true}},
		"executed":          {[]any{"OK", "1", "v"}, redirection{}},
		"executed at first": {[]any{"OK", "1", ask}, redirection{}},
		"executed in part":  {[]any{ask, "1", nil}, redirection{}},
		"refused in part":   {[]any{ask, "1", errors.New("TRYAGAIN")}, redirection{}},
		"moved in between":  {[]any{moved, "1", elsewhere}, redirection{}},
		"moved after ask":   {[]any{ask, "1", moved}, redirection{}},
		"no replies":        {nil, redirection{}},
		"IPv6": {[]any{errors.New("MOVED 1 ::1:6379"), "1", errors.New("MOVED 1 ::1:6379")},
			redirection{"[::1]:6379", false}},
		"no host": {[]any{errors.New("MOVED 1 :6379"), "1", errors.New("MOVED 1 :6379")}, redirection{":6379", false}},
	} {
		if got := redirected(three, tt.replies); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// Where a node does not say on which host the other one is, it is on its own.
func TestRedirectionWithoutHost(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, ContextTimeoutEnabled: true})
	c := newClient(t, rdb, patience).(*cluster)
	here := redis.NewClient(&redis.Options{Addr: "127.0.0.9:7000"})
	there := redis.NewClient(&redis.Options{Addr: "127.0.0.9:7001"})
	defer here.Close()
	defer there.Close()
	c.know(there)
	if got := c.follow(t.Context(), redirection{address: ":7001"}, here, "k"); got != there {
		t.Errorf("it goes to %v, want %v", got, there)
	}
}
