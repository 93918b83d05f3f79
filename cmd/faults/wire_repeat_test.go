package faults

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/cmd/faults/rig"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/testdata/redistest"
)

// The ways in which replies come twice.
var repeats = []struct {
	how         string
	every, more int
}{
	{"each reply comes twice", 1, 0},
	{"one reply in 10 comes twice", 10, 0},
	{"one reply in 10 comes again, three replies later", 10, 3},
}

// A reply that comes twice must not be taken for that to the next command: with it
// came another's session. Visitors and strangers share few connections.
func TestWireRepeats(t *testing.T) {
	for _, r := range repeats {
		t.Run(fmt.Sprintf("every%dlater%d", r.every, r.more), func(t *testing.T) {
			t.Parallel()
			s := stage(t, r.how, "P1, P11: no data of another session", setting{wired: true, logins: true})
			all := invite(t, 4, s.sites.Any)
			var happened int64
			s.suffer(func(ctx context.Context) {
				for _, w := range s.wires {
					w.Add(t, rig.Toxic{Type: "repeat", Attributes: map[string]any{"every": r.every, "later": r.more}})
				}
				for range 5 { // errors come twice, too: that a script is not known
					s.redis.Do(t, "SCRIPT", "FLUSH")
					mingleFor(ctx, all, unlessShort(600*time.Millisecond, 300*time.Millisecond))
				}
				for _, w := range s.wires {
					happened += w.Happened(t, "repeat", "downstream")
				}
				s.heal()
			})
			if happened < 5 {
				t.Errorf("only %d replies came twice", happened)
			}
			s.seen = fmt.Sprintf("%d replies came twice; strangers: %v", happened, farewell(t, all))
		})
	}
}

// The same where all sessions share one connection, so that whatever is left on it
// meets another session next.
func TestWireRepeatsOnOneConnection(t *testing.T) {
	for _, how := range repeats {
		t.Run(fmt.Sprintf("every%dlater%d", how.every, how.more), func(t *testing.T) {
			t.Parallel()
			r := redistest.Real(t)
			wire := rig.NewWire(t, r.Addr)
			h := build(t, poolOf(t, wire.Addr, 1), store.Options{Lease: lease}, middleware.Options{LockWait: lockWait})
			all := invite(t, 6, h.at)
			row := noted(t, how.how+", all on one connection", "P1, P11: no data of another session")
			wire.Add(t, rig.Toxic{Type: "repeat", Attributes: map[string]any{"every": how.every, "later": how.more}})
			for range 5 { // errors come twice, too: that a script is not known
				r.Do(t, "SCRIPT", "FLUSH")
				mingleFor(t.Context(), all, unlessShort(400*time.Millisecond, 200*time.Millisecond))
			}
			happened := wire.Happened(t, "repeat", "downstream")
			wire.Heal(t)
			row.seen = fmt.Sprintf("%d replies came twice; %v", happened, farewell(t, all))
			if happened < 5 {
				t.Errorf("only %d replies came twice", happened)
			}
			allFree(t, r)
		})
	}
}

// Replies come when nobody waits for them any more. A connection must never be used
// again after that.
func TestWireLateOnOneConnection(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	wire := rig.NewWire(t, r.Addr)
	const patience = 200 * time.Millisecond
	h := build(t, poolOf(t, wire.Addr, 1), store.Options{Lease: lease, Timeout: patience}, middleware.Options{LockWait: lockWait})
	all := invite(t, 3, h.at)
	row := noted(t, "replies come around the time-out, all on one connection", "P1, P11: no data of another session")
	mingleFor(t.Context(), all, 200*time.Millisecond)
	wire.Add(t, late(patience*4/10, patience*4/10))
	mingleFor(t.Context(), all, unlessShort(3*time.Second, 2*time.Second))
	wire.Heal(t)
	sum := farewell(t, all)
	if row.seen = sum.String(); sum.silent < 3 {
		t.Errorf("too few requests met a late reply: %v", sum)
	}
	allFree(t, r)
}
