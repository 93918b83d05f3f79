package faults

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
)

// Sessions are encrypted, and their key is being changed: of two sites each seals with the key that
// the other one only opens with. Replies come around the timeout meanwhile, so that commits are
// repeated or given up. No write is lost, none is refused for its key, and none is readable.
func TestWireLateWhileKeysChange(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	const patience = 200 * time.Millisecond
	one, two := bytes.Repeat([]byte("1"), 32), bytes.Repeat([]byte("2"), 32)
	var wires []*rig.Wire
	var sites []*site
	for _, keys := range [][][]byte{{one, two}, {two, one}} {
		wire := rig.NewWire(t, r.Addr)
		of := store.Options{Lease: lease, Timeout: patience, Encryption: store.Encryption{Keys: keys}}
		wires = append(wires, wire)
		sites = append(sites, newSite(t, poolOf(t, wire.Addr, 1), of, middleware.Options{LockWait: lockWait}))
	}
	all := newUsers(t, 4, func(random float64) string { return sites[int(random*2)].URL })
	row := noted(t, "replies come around the time-out while the key of encrypted sessions is changed", "P1, P11: all is kept, and unreadable")
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
