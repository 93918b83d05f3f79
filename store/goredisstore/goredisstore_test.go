package goredisstore

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/a2139e8d/latchkey/store"
	"github.com/redis/go-redis/v9"
)

// A client that would break a promise is refused, with the option and what to do.
func TestRefused(t *testing.T) {
	t.Parallel()
	cluster := func(change func(*redis.ClusterOptions)) redis.UniversalClient {
		o := &redis.ClusterOptions{Addrs: []string{"localhost:1"}, ContextTimeoutEnabled: true}
		change(o)
		return redis.NewClusterClient(o)
	}
	for rule, tt := range map[string]struct {
		client  redis.UniversalClient
		options store.Options
	}{
		"the client is nil":                  {},
		"the client is nil ":                 {client: (*redis.Client)(nil)},
		"the client is nil\t":                {client: (*redis.ClusterClient)(nil)},
		"ContextTimeoutEnabled is false, ":   {client: redis.NewClient(&redis.Options{})},
		"ContextTimeoutEnabled is false, so": {client: cluster(func(o *redis.ClusterOptions) { o.ContextTimeoutEnabled = false })},
		"ReadTimeout or WriteTimeout is -2":  {client: redis.NewClient(&redis.Options{ContextTimeoutEnabled: true, ReadTimeout: -2})},
		"or WriteTimeout is -2":              {client: cluster(func(o *redis.ClusterOptions) { o.WriteTimeout = -2 })},
		"ReadTimeout is -1":                  {client: cluster(func(o *redis.ClusterOptions) { o.ReadTimeout = -1 })},
		"ReadOnly is true":                   {client: cluster(func(o *redis.ClusterOptions) { o.ReadOnly = true })},
		"RouteByLatency or":                  {client: cluster(func(o *redis.ClusterOptions) { o.RouteByLatency = true })},
		"RouteByLatency or RouteRandomly":    {client: cluster(func(o *redis.ClusterOptions) { o.RouteRandomly = true })},
		"ClusterSlots is set, as NewFailoverClusterClient": {client: redis.NewFailoverClusterClient(
			&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"localhost:1"}, ContextTimeoutEnabled: true})},
		"it is a Ring": {client: redis.NewRing(&redis.RingOptions{})},
		"it is a struct { redis.UniversalClient }": {client: struct{ redis.UniversalClient }{redis.NewClient(&redis.Options{})}},
		"store: Options.Prefix":                    {client: cluster(func(*redis.ClusterOptions) {}), options: store.Options{Prefix: "{"}},
		"the timeout is -1s":                       {client: cluster(func(*redis.ClusterOptions) {}), options: store.Options{Timeout: -time.Second}},
		"Options.TLS is set":                       {client: cluster(func(*redis.ClusterOptions) {}), options: store.Options{TLS: &tls.Config{}}},
	} {
		st, err := New(tt.client, tt.options)
		if tt.client != nil && !strings.Contains(rule, "nil") {
			tt.client.Close()
		}
		if st != nil || err == nil || !strings.Contains(err.Error(), strings.TrimSpace(rule)) {
			t.Errorf("%v, want %q", err, rule)
		}
	}
}

const tooLate = "no connection in time" // it is not known what was sent

// What is wrong with the servers is an error of Ping and of the first exchange that says so. All else
// works.
func TestServersThatDoNotFit(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		client func(t *testing.T) redis.UniversalClient
		want   string
	}{
		"a cluster behind a Client": {func(t *testing.T) redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: redistest.NewCluster(t, 2, 0).Nodes[0].Addr, ContextTimeoutEnabled: true})
		}, "use rueidisstore.Open or goredisstore.New"},
		"one server behind a ClusterClient": {func(t *testing.T) redis.UniversalClient {
			return clusterAt(redistest.Real(t).Addr)
		}, "cluster support disabled"},
		"a wrong password": {func(t *testing.T) redis.UniversalClient {
			server := redistest.Real(t)
			server.Do(t, "CONFIG", "SET", "requirepass", "secret")
			return redis.NewClient(&redis.Options{Addr: server.Addr, Password: "wrong", ContextTimeoutEnabled: true})
		}, "WRONGPASS"},
		"no password": {func(t *testing.T) redis.UniversalClient {
			server := redistest.Real(t)
			server.Do(t, "CONFIG", "SET", "requirepass", "secret")
			return redis.NewClient(&redis.Options{Addr: server.Addr, ContextTimeoutEnabled: true})
		}, "NOAUTH"},
		"TLS to a server without": {func(t *testing.T) redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: redistest.Real(t).Addr, TLSConfig: &tls.Config{}, ContextTimeoutEnabled: true})
		}, tooLate},
		"another database": {func(t *testing.T) redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: redistest.Real(t).Addr, DB: 3, ContextTimeoutEnabled: true})
		}, ""},
		"a dead address before living ones": {func(t *testing.T) redis.UniversalClient {
			nodes := redistest.NewCluster(t, 2, 0).Nodes
			return clusterAt("127.0.0.1:1", nodes[0].Addr, nodes[1].Addr)
		}, ""},
		"a node that does not answer before living ones": {func(t *testing.T) redis.UniversalClient {
			nodes, silent := redistest.NewCluster(t, 2, 0).Nodes, redistest.Real(t)
			silent.Pause(t)
			return clusterAt(silent.Addr, nodes[0].Addr, nodes[1].Addr)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := tt.client(t)
			defer c.Close()
			st, err := New(c, store.Options{Timeout: 3 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			for what, try := range map[string]func() error{
				"Ping":   func() error { return st.Ping(t.Context()) },
				"Create": func() error { return st.Create(t.Context(), "id-1", []byte("1"), store.Terms{}) },
			} {
				err := try()
				for end := time.Now().Add(patience); tt.want == "" && err != nil && time.Now().Before(end); {
					err = try()
				}
				if tt.want == "" && err != nil {
					t.Errorf("%s: %v", what, err)
				}
				if refused := tt.want != tooLate; tt.want != "" && (!errors.Is(err, transport.ErrUnavailable) ||
					errors.Is(err, transport.ErrRefused) != refused || !strings.Contains(err.Error(), tt.want)) {
					t.Errorf("%s: %v, want %q", what, err, tt.want)
				}
			}
		})
	}
}

func clusterAt(addresses ...string) redis.UniversalClient {
	return redis.NewClusterClient(&redis.ClusterOptions{Addrs: addresses, ContextTimeoutEnabled: true})
}

// The client is the program's: it goes on when the store is closed.
func TestCloseLeavesTheClient(t *testing.T) {
	t.Parallel()
	c := redis.NewClient(&redis.Options{Addr: redistest.Real(t).Addr, ContextTimeoutEnabled: true})
	defer c.Close()
	st, err := New(c, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(st.Ping(t.Context()), st.Close()); err != nil {
		t.Fatal(err)
	}
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
}
