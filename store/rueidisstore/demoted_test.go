package rueidisstore

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
)

// A server that is no master any more keeps its connections. The address that leads to the new one
// by then, as that of a service does, is dialled anew, for those that write and those that only read.
func TestDemotedServerIsLeft(t *testing.T) {
	t.Parallel()
	const id = "AAAAAAAAAAAAAAAAAAAAAA"
	for name, request := range map[string]func(*store.Store) error{
		"a write": func(st *store.Store) error { return save(t, st, id, "1") },
		"a read": func(st *store.Store) error {
			_, err := st.Load(t.Context(), id, store.Terms{TTL: 1 << 40, Lifetime: 1 << 50})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old, promoted := redistest.Real(t), redistest.Real(t)
			create(t, openStore(t, at(promoted), patient), id, "0")
			var address atomic.Pointer[string]
			address.Store(&old.Addr)
			o := at(old)
			o.DialCtxFn = func(ctx context.Context, _ string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
				return d.DialContext(ctx, "tcp", *address.Load())
			}
			st := openStore(t, o, patient)
			create(t, st, id, "0")

			host, port, _ := net.SplitHostPort(promoted.Addr)
			address.Store(&promoted.Addr)
			old.Do(t, "REPLICAOF", host, port)
			for range 3 { // what was refused is sent again, to the new one
				if err := request(st); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
