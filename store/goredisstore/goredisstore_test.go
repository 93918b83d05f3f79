package goredisstore

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/a2139e8d/latchkey/store"
	"github.com/redis/go-redis/v9"
)

// A client that would break a promise is refused. The error names the option and says what to do.
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
		"the client is a Ring":                             {client: redis.NewRing(&redis.RingOptions{})},
		"the client is a struct { redis.UniversalClient }": {client: struct{ redis.UniversalClient }{redis.NewClient(&redis.Options{})}},
		"store: Options.Prefix":                            {client: cluster(func(*redis.ClusterOptions) {}), options: store.Options{Prefix: "{"}},
		"the timeout is -1s":                               {client: cluster(func(*redis.ClusterOptions) {}), options: store.Options{Timeout: -time.Second}},
		"Options.TLS is set":                               {client: cluster(func(*redis.ClusterOptions) {}), options: store.Options{TLS: &tls.Config{}}},
	} {
		st, err := New(tt.client, tt.options)
		if tt.client != nil && !strings.Contains(rule, "nil") {
			tt.client.Close()
		}
		if st != nil || err == nil || !strings.Contains(err.Error(), strings.TrimSpace(rule)) {
			t.Errorf("%v, want %q", err, rule)
		}
		if client, err := NewClient(tt.client, time.Second); err != nil && client != nil {
			t.Errorf("NewClient returns a client beside %v", err)
		}
	}
}

const tooLate = "no connection in time" // nobody knows what was sent

// If the servers do not fit, Ping and the first round trip fail, and say what is wrong. If they fit, everything
// works.
func TestServersThatDoNotFit(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		client func(server *redistest.Server, o *redis.UniversalOptions) redis.UniversalClient
		want   string
	}{
		"one server behind a ClusterClient": {func(_ *redistest.Server, o *redis.UniversalOptions) redis.UniversalClient {
			return redis.NewClusterClient(o.Cluster())
		}, "cluster support disabled"},
		"a wrong password": {func(server *redistest.Server, o *redis.UniversalOptions) redis.UniversalClient {
			server.Do(t, "CONFIG", "SET", "requirepass", "secret")
			o.Password = "wrong"
			return redis.NewClient(o.Simple())
		}, "WRONGPASS"},
		"no password": {func(server *redistest.Server, o *redis.UniversalOptions) redis.UniversalClient {
			server.Do(t, "CONFIG", "SET", "requirepass", "secret")
			return redis.NewClient(o.Simple())
		}, "NOAUTH"},
		"TLS to a server without": {func(_ *redistest.Server, o *redis.UniversalOptions) redis.UniversalClient {
			o.TLSConfig = &tls.Config{}
			return redis.NewClient(o.Simple())
		}, tooLate},
		"another database": {func(_ *redistest.Server, o *redis.UniversalOptions) redis.UniversalClient {
			o.DB = 3
			return redis.NewClient(o.Simple())
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Real(t)
			fits(t, tt.client(server, &redis.UniversalOptions{Addrs: []string{server.Addr}, ContextTimeoutEnabled: true}), tt.want)
		})
	}
}

// A redis.Client is not for a cluster.
func clusterBehindAClient(t *testing.T, c *redistest.Cluster) {
	fits(t, at(c.Nodes[0]), "use rueidisstore.Open or goredisstore.New, or for locks goredisstore.NewClient")
}

// fits checks that a store over c works, or that all errors say what is wrong.
func fits(t *testing.T, c redis.UniversalClient, wrong string) {
	t.Helper()
	timeout := patience
	if wrong != "" { // some clients retry for as long as they may
		timeout = time.Second
	}
	st := newStore(t, c, timeout)
	for what, try := range map[string]func() error{
		"Ping":   func() error { return st.Ping(t.Context()) },
		"Create": func() error { return records.Of(st).Create(t.Context(), "id-1", []byte("1"), records.Terms{}) },
	} {
		err := try()
		for end := time.Now().Add(patience); time.Now().Before(end) && err != nil && !strings.Contains(err.Error(), wrong); {
			err = try() // a busy machine may be too slow for the error that says what is wrong
		}
		if wrong == "" {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		if refused := wrong != tooLate; !errors.Is(err, transport.ErrUnavailable) ||
			errors.Is(err, transport.ErrRefused) != refused || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v, want %q", what, err, wrong)
		}
	}
}
