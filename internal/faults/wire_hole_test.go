package faults

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
)

// All packets are lost. Connections stay open, and new ones are accepted.
func TestWireBlackHole(t *testing.T) {
	t.Parallel()
	s := stage(t, "the wire is a black hole for 3 s, for new connections, too", "P8: 503 in time, back by itself", setting{apart: true, wired: true, logins: true})
	g := s.guest(s.demos[0])
	s.run(func(ctx context.Context) {
		s.both(rig.Toxic{Type: "timeout", Attributes: map[string]any{"timeout": 0}})
		begun := time.Now()
		got := g.post(s.demos[0], "/incr")
		if limit := timeout * 5 / 4; got.status != http.StatusServiceUnavailable || got.took > limit+time.Second || got.took < timeout/2 {
			t.Errorf("a write was answered with %d after %v, want 503 after at most %v", got.status, got.took, limit)
		}
		pause(ctx, 3*time.Second-time.Since(begun))
		s.heal()
	})
	s.backWithin(timeout + 2*lease)
}

// One process is cut off from Redis, while another is not. The network keeps what was on
// its way, and delivers it in the end. The process that is cut off must hold no session
// for longer than a lease and answer 503, and its late commands must change nothing.
func TestWirePartition(t *testing.T) {
	t.Parallel()
	s := stage(t, "one process cut off for longer than the lease", "P3, P7: others take over in time, nothing stale", setting{
		apart: true, wired: true, logins: true, flags: []string{"-work", "300ms"}})
	alone, other, wire := s.demos[0], s.demos[1], s.wires[0]
	g := s.guest(alone)
	g.mustSet(alone, "before")
	s.run(func(ctx context.Context) {
		h := s.holdAs(g, alone, "stale")
		for _, stream := range []string{"upstream", "downstream"} {
			wire.Add(t, rig.Toxic{Type: "stall", Stream: stream})
		}
		begun := time.Now()
		rightful := g.set(other, "rightful")
		if limit := lease + 2*time.Second; rightful.status != http.StatusOK || rightful.took > limit {
			t.Errorf("another process answered %d after %v, want 200 within the lease", rightful.status, rightful.took)
		}
		s.seen = "taken over in " + rightful.took.Round(time.Millisecond).String()
		g.must("a write to the process that is cut off", g.post(alone, "/incr"), http.StatusServiceUnavailable, "")
		g.must("a read from the process that is cut off", g.get(alone, "/params"), http.StatusServiceUnavailable, "")
		g.must("the stale write", <-h.replies, http.StatusServiceUnavailable, "")
		pause(ctx, lease+time.Second-time.Since(begun))
		if n := wire.Happened(t, "stall", "upstream"); n < 2 {
			t.Error("nothing was on its way")
		}
		s.heal()
	})
	for _, d := range s.demos {
		g.mustHave(d, "before", "rightful")
	}
}
