package faults

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
)

// repeats are the ways in which replies arrive twice.
var repeats = []struct {
	how                string
	every, more, lines int
}{
	{"each reply comes twice", 1, 0, 0},
	{"one reply in 10 comes twice", 10, 0, 0},
	{"one reply in 10 comes again, three replies later", 10, 3, 0},
	{"six lines in 60 come twice", 10, 0, 6}, // as many lines as the replies to a read have
}

// A reply that arrives twice must not be taken for the reply to the next command, which may belong to another
// session: here all sessions share one connection.
func TestWireRepeatsOnOneConnection(t *testing.T) {
	for _, how := range repeats {
		t.Run(fmt.Sprintf("every%dlater%dlines%d", how.every, how.more, how.lines), func(t *testing.T) {
			t.Parallel()
			r := redistest.Real(t)
			wire := rig.NewWire(t, r.Addr)
			h := newSite(t, poolOf(t, wire.Addr, 1), store.Options{Lease: lease}, middleware.Options{LockWait: lockWait})
			all := newUsers(t, 6, h.at)
			row := noted(t, how.how+", all on one connection", "P1, P11: no data of another session")
			wire.Trouble(nil, &rig.Trouble{Every: how.every, Later: how.more, Lines: how.lines})
			for range 5 { // so that NOSCRIPT errors come twice, too
				r.Do(t, "SCRIPT", "FLUSH")
				workFor(t.Context(), all, unlessShort(400*time.Millisecond, 200*time.Millisecond))
			}
			workUntil(t.Context(), all, 200*time.Millisecond, func() bool { return wire.Happened() >= 5 })
			wire.Heal()
			happened(t, "a reply came twice", wire.Happened(), 5)
			row.seen = fmt.Sprintf("%d replies came twice; %v", wire.Happened(), lastLook(t, all))
			allFree(t, r)
		})
	}
}

// Sessions are encrypted, and their key is being changed: each of two sites seals with the key that the other
// uses only for opening. Meanwhile replies arrive around the timeout, so that commits are repeated or abandoned.
// No write is lost, none is refused because of its key, and none is readable.
func TestWireLateWhileKeysChange(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	const patience = 200 * time.Millisecond
	one, two := bytes.Repeat([]byte("one "), 8), bytes.Repeat([]byte("two "), 8)
	var wires []*rig.Wire
	var sites []*site
	for _, keys := range [][][]byte{{one, two}, {two, one}} {
		wire := rig.NewWire(t, r.Addr)
		of := store.Options{Lease: lease, Timeout: patience, Encryption: store.Encryption{Keys: keys}}
		wires = append(wires, wire)
		sites = append(sites, newSite(t, poolOf(t, wire.Addr, 1), of, middleware.Options{LockWait: lockWait}))
	}
	all := newUsers(t, 4, func(random float64) string { return sites[int(random*2)].URL })
	row := noted(t, "replies come around the timeout while the key of encrypted sessions is changed", "P1, P11: all writes are kept, and unreadable in Redis")
	workFor(t.Context(), all, 200*time.Millisecond)
	for _, wire := range wires {
		wire.Trouble(nil, &rig.Trouble{Latency: patience * 8 / 10, Jitter: patience * 6 / 10})
	}
	workFor(t.Context(), all, unlessShort(3*time.Second, 2*time.Second))
	for _, wire := range wires {
		wire.Heal()
	}
	row.seen = lastLook(t, all).String()
	records := 0
	for _, key := range r.Keys(t) {
		if stored, err := redis.String(r.Do(t, "GET", key), nil); err == nil && strings.Contains(stored, `,"e":`) {
			records++
			if strings.Contains(stored, "param_") {
				t.Errorf("%s is %q", key, stored)
			}
		}
	}
	if records < len(all) {
		t.Errorf("%d sessions are sealed, want %d", records, len(all))
	}
	allFree(t, r)
}

// A reply is cut off after every possible number of bytes. The result is an error, or the whole record.
func TestWireTruncated(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	wire := rig.NewWire(t, r.Addr)
	good := store.New(poolOf(t, r.Addr, 2), store.Options{Timeout: time.Minute})
	data := []byte(`{"a":"{}","b":"\"}","c":[1,22,333]}`)

	failed, whole := 0, 0
	row := noted(t, "the reply to a take, and to a read, cut off after each of its bytes", "P13: the record or an error, nothing in between")
	for n := 1; whole < 6; n++ {
		if n > 1000 {
			t.Fatal("no reply arrived whole")
		}
		id := fmt.Sprintf("session%d", n)
		if err := records.Of(good).Create(t.Context(), id, data, records.Terms{}); err != nil {
			t.Fatal(err)
		}
		wire.Trouble(nil, &rig.Trouble{Limit: cmp.Or(n-1, -1)})
		for _, read := range []func(context.Context, *store.Store, string) (records.Record, error){take, load} {
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

func take(ctx context.Context, st *store.Store, id string) (records.Record, error) {
	h, _, err := records.Of(st).Take(ctx, id, records.Terms{})
	if h == nil {
		return records.Record{}, err
	}
	h.Release(ctx)
	return h.Record, err
}

func load(ctx context.Context, st *store.Store, id string) (records.Record, error) {
	return records.Of(st).Load(ctx, id, records.Terms{})
}
