package rueidisstore

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
	"github.com/redis/rueidis"
)

// patient are options for what is not about time.
var patient = store.Options{Lease: time.Minute, Timeout: 10 * time.Second}

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

// save stores data in a session that is there, under its lock.
func save(t testing.TB, st *store.Store, id, data string) error {
	t.Helper()
	h, err := st.Take(t.Context(), id, store.Terms{LockWait: 10 * time.Second})
	if err != nil {
		return err
	}
	return h.Save(t.Context(), []byte(data))
}

func create(t testing.TB, st *store.Store, id, data string) {
	t.Helper()
	if err := st.Create(t.Context(), id, []byte(data), store.Terms{}); err != nil {
		t.Fatal(err)
	}
}

func wantData(t testing.TB, st *store.Store, id, want string) {
	t.Helper()
	if r, err := st.Load(t.Context(), id, store.Terms{}); err != nil || string(r.Data) != want {
		t.Errorf("%s has %q, %v; want %q", id, r.Data, err, want)
	}
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

// number returns a reply that is one.
func number(t testing.TB, reply any) int {
	t.Helper()
	n, err := redis.Int(reply, nil)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// handOver lets b wait for a session that a has, until one of them has subscribed, and get it.
// It returns when nobody listens any more.
func handOver(t testing.TB, a, b *store.Store, id string, servers []*redistest.Server) {
	t.Helper()
	h, err := a.Take(t.Context(), id, store.Terms{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- save(t, b, id, "new") }()
	asked := func(command string) func() bool {
		return func() bool {
			return slices.ContainsFunc(servers, func(s *redistest.Server) bool {
				return strings.Contains(string(s.Do(t, "INFO", "commandstats").([]byte)), command+":")
			})
		}
	}
	eventually(t, "it subscribes", asked("subscribe"))
	h.Release(t.Context())
	if err := <-done; err != nil {
		t.Error(err)
	}
	eventually(t, "it unsubscribes", asked("unsubscribe"))
}
