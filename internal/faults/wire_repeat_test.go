package faults

import (
	"context"
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

// A reply that comes twice must not be taken for the reply to the next command, which may
// be about another session. Visitors and users share few connections.
func TestWireRepeats(t *testing.T) {
	for _, r := range repeats {
		t.Run(fmt.Sprintf("every%dlater%dlines%d", r.every, r.more, r.lines), func(t *testing.T) {
			t.Parallel()
			s := stage(t, r.how, "P1, P11: no data of another session", setting{wired: true, logins: true})
			all := newUsers(t, 4, s.sites.Any)
			var happened int64
			s.run(func(ctx context.Context) {
				for _, w := range s.wires {
					w.Add(t, rig.Toxic{Type: "repeat", Attributes: map[string]any{"every": r.every, "later": r.more, "lines": r.lines}})
				}
				for range 5 { // so that NOSCRIPT errors come twice, too
					s.redis.Do(t, "SCRIPT", "FLUSH")
					workFor(ctx, all, unlessShort(600*time.Millisecond, 300*time.Millisecond))
				}
				for _, w := range s.wires {
					happened += w.Happened(t, "repeat", "downstream")
				}
				s.heal()
			})
			if happened < 5 {
				t.Errorf("only %d replies came twice", happened)
			}
			s.seen = fmt.Sprintf("%d replies came twice; users: %v", happened, lastLook(t, all))
		})
	}
}

// The same where all sessions share one connection, so that any reply that is left on it
// would go to another session.
func TestWireRepeatsOnOneConnection(t *testing.T) {
	for _, how := range repeats {
		t.Run(fmt.Sprintf("every%dlater%dlines%d", how.every, how.more, how.lines), func(t *testing.T) {
			t.Parallel()
			r := redistest.Real(t)
			wire := rig.NewWire(t, r.Addr)
			h := newSite(t, poolOf(t, wire.Addr, 1), store.Options{Lease: lease}, middleware.Options{LockWait: lockWait})
			all := newUsers(t, 6, h.at)
			row := noted(t, how.how+", all on one connection", "P1, P11: no data of another session")
			wire.Add(t, rig.Toxic{Type: "repeat", Attributes: map[string]any{"every": how.every, "later": how.more, "lines": how.lines}})
			for range 5 { // so that NOSCRIPT errors come twice, too
				r.Do(t, "SCRIPT", "FLUSH")
				workFor(t.Context(), all, unlessShort(400*time.Millisecond, 200*time.Millisecond))
			}
			happened := wire.Happened(t, "repeat", "downstream")
			wire.Heal(t)
			row.seen = fmt.Sprintf("%d replies came twice; %v", happened, lastLook(t, all))
			if happened < 5 {
				t.Errorf("only %d replies came twice", happened)
			}
			allFree(t, r)
		})
	}
}

// Replies come when no one waits for them any more. The connection must never be used
// again.
func TestWireLateOnOneConnection(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	wire := rig.NewWire(t, r.Addr)
	const patience = 200 * time.Millisecond
	h := newSite(t, poolOf(t, wire.Addr, 1), store.Options{Lease: lease, Timeout: patience}, middleware.Options{LockWait: lockWait})
	all := newUsers(t, 3, h.at)
	row := noted(t, "replies come around the time-out, all on one connection", "P1, P11: no data of another session")
	workFor(t.Context(), all, 200*time.Millisecond)
	wire.Add(t, late(patience*8/10, patience*6/10))
	workFor(t.Context(), all, unlessShort(3*time.Second, 2*time.Second))
	wire.Heal(t)
	sum := lastLook(t, all)
	if row.seen = sum.String(); sum.silent < 3 {
		t.Errorf("too few requests met a late reply: %v", sum)
	}
	allFree(t, r)
}
