package faults

import (
	"fmt"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
)

// repeats are the ways in which replies come twice.
var repeats = []struct {
	how                string
	every, more, lines int
}{
	{"each reply comes twice", 1, 0, 0},
	{"one reply in 10 comes twice", 10, 0, 0},
	{"one reply in 10 comes again, three replies later", 10, 3, 0},
	{"six lines in 60 come twice", 10, 0, 6}, // as many as the replies to a read have
}

// A reply that comes twice must not be taken for the reply to the next command, which may be about
// another session: all sessions share one connection here.
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
