package goredisstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/redis/go-redis/v9"
)

// A round trip of which a part was executed is not redirected: that part would be executed twice, and in another
// order.
func halfOfAnExchangeIsRedirected(t *testing.T, c *redistest.Cluster) {
	const key = "{half}"
	from, to := c.Owner(t, c.Slot(t, key)), c.Nodes[3]
	client := newClient(t, at(c.Nodes...), patience)
	do := func(commands ...transport.Command) []any {
		t.Helper()
		replies, err := client.Do(t.Context(), key, commands...)
		if err != nil {
			t.Fatalf("%v: %v", commands, err)
		}
		return replies
	}
	here, there := key+"here", key+"there"
	do(transport.Command{"SET", here, 1})
	m := c.BeginMove(t, c.Slot(t, key), to)
	replies := do(
		transport.Command{"INCR", here},
		transport.Command{"INCR", there},
		transport.Command{"EVAL", "return 1", 2, here, there})
	refusals := fmt.Sprint(replies[1:])
	if replies[0] != int64(2) || !strings.Contains(refusals, "ASK ") || !strings.Contains(refusals, "TRYAGAIN ") {
		t.Errorf("replies: %v", replies)
	}
	c.FinishMove(t, m)
	defer c.Move(t, m.Slot, from)
	got, route, err := client.(transport.RoutedClient).DoRouted(t.Context(), key, transport.Command{"MGET", here, there})
	if err != nil || fmt.Sprint(got) != "[[2 <nil>]]" {
		t.Errorf("the executed commands: %v, %v", got, err)
	}
	if route != (transport.Route{Node: to.Addr, Database: "0", Moved: 1}) {
		t.Errorf("the route is %+v, want one redirection to %s", route, to.Addr)
	}
}

// A round trip follows a redirection if all its commands agree on it. PING has no key, and follows the others.
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

// If a node names no host for the other node, the host is its own.
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
		t.Errorf("the round trip goes to %v, want %v", got, there)
	}
}
