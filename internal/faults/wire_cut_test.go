package faults

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
)

// Connections are reset while replies are on their way, again and again.
func TestWireReset(t *testing.T) {
	t.Parallel()
	s := stage(t, "connections reset in mid-reply, again and again", "P1: nothing lost", setting{wired: true, logins: true})
	var torn int64
	before := 0
	s.run(func(ctx context.Context) {
		before = s.connections()
		for range 10 {
			for i, w := range s.wires {
				// One demo gets half a reply and a closed connection, the other a reset.
				if i == 0 {
					w.Add(t, rig.Toxic{Type: "tear", Attributes: map[string]any{"every": 10}})
				} else {
					w.Add(t, rig.Toxic{Type: "reset_peer"})
				}
			}
			pause(ctx, unlessShort(200*time.Millisecond, 100*time.Millisecond))
			torn += s.wires[0].Happened(t, "tear", "downstream")
			s.heal()
			pause(ctx, 50*time.Millisecond)
		}
	})
	again := s.connections() - before
	if torn < 20 || again < 50 {
		t.Errorf("%d replies were torn, and %d connections made: too few", torn, again)
	}
	s.seen = fmt.Sprintf("%d replies torn, %d connections made anew", torn, again)
}

// cut breaks all connections of all demos and refuses new ones for a while. A site without
// Redis must answer 503 at once to requests with a session.
func (s *scene) cut(ctx context.Context, g *guest, d time.Duration) {
	s.Helper()
	for _, w := range s.wires {
		w.Cut()
	}
	for i, demo := range s.demos {
		if got := g.post(demo, "/incr"); got.status != 503 || got.took > time.Second {
			s.Errorf("without Redis, demo %d answered %d after %v", i, got.status, got.took)
		}
	}
	pause(ctx, d)
	for _, w := range s.wires {
		w.Join(s.T)
	}
}

// Redis is unreachable for a moment.
func TestWireCut(t *testing.T) {
	t.Parallel()
	s := stage(t, "connections cut, and new connections refused, for half a lease", "P8: 503 at once, back by itself", setting{wired: true, logins: true})
	g := s.guest(s.demos[0])
	s.run(func(ctx context.Context) { s.cut(ctx, g, lease/2) })
	s.backWithin(2 * lease)
}

// Redis is unreachable for longer than a lease, so that holders come back to sessions that
// others may have taken.
func TestWireCutForLong(t *testing.T) {
	t.Parallel()
	s := stage(t, "connections cut, and new connections refused, for 2.5 leases", "P3, P8: 503 at once, back by itself", setting{apart: true, wired: true, logins: true})
	g := s.guest(s.demos[0])
	s.run(func(ctx context.Context) { s.cut(ctx, g, 5*lease/2) })
	s.backWithin(2 * lease)
}

// Each connection is closed after a number of bytes, in the middle of a reply.
func TestWireTruncatedUnderLoad(t *testing.T) {
	t.Parallel()
	s := stage(t, "each connection ends after 2,000 bytes of replies", "P1: nothing lost, no half-read record", setting{wired: true, logins: true})
	before := 0
	s.run(func(ctx context.Context) {
		before = s.connections()
		for _, w := range s.wires {
			w.Add(t, rig.Toxic{Type: "limit_data", Attributes: map[string]any{"bytes": 2000}})
		}
		pause(ctx, unlessShort(3*time.Second, 1500*time.Millisecond))
		before = s.connections() - before
		s.heal()
	})
	if before < 50 {
		t.Errorf("only %d connections were made anew", before)
	}
	s.seen = fmt.Sprintf("%d connections made anew", before)
}
