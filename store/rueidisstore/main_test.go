package rueidisstore

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
	"github.com/redis/rueidis"
)

var onCluster = flag.Bool("cluster", false, "also run the tests on clusters and with Sentinel")

func TestMain(m *testing.M) {
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

// patient are options for tests that are not about time.
var patient = store.Options{Lease: time.Minute, Timeout: 20 * time.Second}

// openStore returns a store that ends with the test.
func openStore(t testing.TB, c rueidis.ClientOption, o store.Options) *store.Store {
	t.Helper()
	st, err := Open(c, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

func at(servers ...*redistest.Server) (o rueidis.ClientOption) {
	for _, s := range servers {
		o.InitAddress = append(o.InitAddress, s.Addr)
	}
	return o
}

// save stores data in an existing session, under its lock.
func save(t testing.TB, st *store.Store, id, data string) error {
	t.Helper()
	h, _, err := records.Of(st).Take(t.Context(), id, records.Terms{LockWait: time.Minute})
	if err != nil {
		return err
	}
	return h.Save(t.Context(), []byte(data))
}

func create(t testing.TB, st *store.Store, id, data string) {
	t.Helper()
	if err := records.Of(st).Create(t.Context(), id, []byte(data), records.Terms{}); err != nil {
		t.Fatal(err)
	}
}

func wantData(t testing.TB, st *store.Store, id, want string) {
	t.Helper()
	if r, err := records.Of(st).Load(t.Context(), id, records.Terms{}); err != nil || string(r.Data) != want {
		t.Errorf("%s has %q, %v; want %q", id, r.Data, err, want)
	}
}

// number returns a reply as a number.
func number(t testing.TB, reply any) int {
	t.Helper()
	n, err := redis.Int(reply, nil)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func opened(t testing.TB, o rueidis.ClientOption, timeout time.Duration) *client {
	t.Helper()
	c, err := newClient(o, timeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.maker.close)
	return c
}

// do makes a round trip that must succeed.
func do(t testing.TB, c *client, key string, commands ...transport.Command) []any {
	t.Helper()
	replies, err := c.Do(t.Context(), key, commands...)
	if err != nil {
		t.Fatal(err)
	}
	return replies
}
