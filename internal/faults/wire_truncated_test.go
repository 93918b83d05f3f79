package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
)

// A reply is cut off after every possible number of bytes: the result is an error, or the
// whole record.
func TestWireTruncated(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	wire := rig.NewWire(t, r.Addr)
	good := store.New(poolOf(t, r.Addr, 2), store.Options{Lease: lease})
	data := []byte(`{"a":"{}","b":"\"}","c":[1,22,333]}`)

	failed, whole := 0, 0
	row := noted(t, "the reply to a take, and to a read, cut off after each of its bytes", "P13: the record or an error, nothing between")
	for n := 1; whole < 6; n++ {
		if n > 1000 {
			t.Fatal("no reply was ever whole")
		}
		id := fmt.Sprintf("session%d", n)
		if err := good.Create(t.Context(), id, data, store.Terms{}); err != nil {
			t.Fatal(err)
		}
		wire.Trouble(nil, &rig.Trouble{Limit: cmp.Or(n-1, -1)})
		for _, read := range []func(context.Context, *store.Store, string) (store.Record, error){take, load} {
			pool := poolOf(t, wire.Addr, 1)
			record, err := read(t.Context(), store.New(pool, store.Options{Lease: lease}), id)
			switch {
			case err == nil && string(record.Data) == string(data):
				whole++
			case err == nil:
				t.Errorf("after %d bytes the record is %q", n-1, record.Data)
			case !errors.Is(err, store.ErrUnavailable):
				t.Errorf("after %d bytes: %v", n-1, err)
			default:
				failed++
			}
			pool.Close()
		}
		wire.Heal()
		record, err := load(t.Context(), good, id)
		if err != nil || string(record.Data) != string(data) {
			t.Errorf("after %d bytes, what is stored is %q, %v", n-1, record.Data, err)
		}
	}
	row.seen = fmt.Sprintf("%d errors, %d whole records", failed, whole)
	happened(t, "a reply was cut", failed, 2*len(data))
	allFree(t, r)
}

func take(ctx context.Context, st *store.Store, id string) (store.Record, error) {
	h, err := st.Take(ctx, id, store.Terms{})
	if h == nil {
		return store.Record{}, err
	}
	h.Release(ctx)
	return h.Record, err
}

func load(ctx context.Context, st *store.Store, id string) (store.Record, error) {
	return st.Load(ctx, id, store.Terms{})
}
