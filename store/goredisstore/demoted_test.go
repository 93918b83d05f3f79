package goredisstore

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
	"github.com/redis/go-redis/v9"
)

// A server that is no master any more keeps its connections. The address that leads to the new one
// by then, as that of a service does, is dialled anew, for those that write and those that only read.
func TestDemotedServerIsLeft(t *testing.T) {
	t.Parallel()
	const id = "AAAAAAAAAAAAAAAAAAAAAA"
	for name, request := range map[string]func(*store.Store) error{
		"a write": func(st *store.Store) error {
			h, err := st.Take(t.Context(), id, store.Terms{})
			if err != nil {
				return err
			}
			return h.Save(t.Context(), []byte("1"))
		},
		"a read": func(st *store.Store) error {
			_, err := st.Load(t.Context(), id, store.Terms{TTL: 1 << 40, Lifetime: 1 << 50})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old, promoted := redistest.Real(t), redistest.Real(t)
			var address atomic.Pointer[string]
			address.Store(&promoted.Addr)
			at := func() *store.Store {
				return newStore(t, redis.NewClient(&redis.Options{
					Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
						return new(net.Dialer).DialContext(ctx, "tcp", *address.Load())
					},
					ContextTimeoutEnabled: true,
				}))
			}
			for _, s := range []*redistest.Server{promoted, old} {
				address.Store(&s.Addr)
				if err := at().Create(t.Context(), id, []byte("0"), store.Terms{}); err != nil {
					t.Fatal(err)
				}
			}
			st := at()
			if err := request(st); err != nil { // connects
				t.Fatal(err)
			}
			host, port, _ := net.SplitHostPort(promoted.Addr)
			address.Store(&promoted.Addr)
			old.Do(t, "REPLICAOF", host, port)
			failed := 0
			for request(st) != nil { // each may give one connection up
				if failed++; failed > 5 {
					t.Fatal("it is served by the old one all the time")
				}
			}
		})
	}
}
