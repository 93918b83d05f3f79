package faults

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
)

// both makes all wires toxic, in both directions.
func (s *scene) both(toxic rig.Toxic) {
	s.Helper()
	for _, w := range s.wires {
		for _, stream := range []string{"upstream", "downstream"} {
			toxic.Stream = stream
			w.Add(s.T, toxic)
		}
	}
}

// heal removes all toxics from all wires.
func (s *scene) heal() {
	s.Helper()
	for _, w := range s.wires {
		w.Heal(s.T)
	}
}

// late returns a toxic that delays what goes through it.
func late(by, jitter time.Duration) rig.Toxic {
	return rig.Toxic{Type: "latency", Attributes: map[string]any{"latency": by.Milliseconds(), "jitter": jitter.Milliseconds()}}
}

// The round trip to Redis takes less than the time-out, so nothing may fail.
func TestWireSlow(t *testing.T) {
	t.Parallel()
	s := stage(t, "the wire is slow by 0.3 s ± 0.1 s each way", "P1, P8: all is answered", setting{wired: true, logins: true, flags: []string{"-lease", "10s"}})
	s.run(func(ctx context.Context) {
		s.both(late(300*time.Millisecond, 100*time.Millisecond))
		if took := s.ping(s.wires[0].Addr); took < 400*time.Millisecond {
			t.Errorf("Redis answers in %v", took)
		}
		pause(ctx, unlessShort(4*time.Second, 2*time.Second))
		s.heal()
	})
	s.allAnswered()
}

// The round trip takes about as long as the time-out: some replies come in time, others do
// not.
func TestWireSlowAsTheTimeout(t *testing.T) {
	t.Parallel()
	s := stage(t, "the wire is slow by 1 s ± 0.5 s each way", "P8: nothing lost, back by itself", setting{apart: true, wired: true, logins: true})
	s.run(func(ctx context.Context) {
		s.both(late(time.Second, 500*time.Millisecond))
		pause(ctx, unlessShort(5*time.Second, 3*time.Second))
		s.heal()
	})
	if s.summary().Silent == 0 {
		t.Error("no reply came too late")
	}
}

// All replies come after the time-out, when no one waits for them any more: they must not
// be taken for replies to other commands.
func TestWireSlowerThanTheTimeout(t *testing.T) {
	t.Parallel()
	s := stage(t, "replies are slow by 2.5 s, past the time-out", "P8: 503 in time; no reply taken for another's", setting{apart: true, wired: true, logins: true})
	all := newUsers(t, 4, s.sites.Any)
	s.run(func(ctx context.Context) {
		workFor(ctx, all, 300*time.Millisecond)
		for _, w := range s.wires {
			w.Add(t, rig.Toxic{Type: "delay", Attributes: map[string]any{"ms": 2500}})
		}
		begun := time.Now()
		workFor(ctx, all, unlessShort(4*time.Second, 3*time.Second))
		for _, v := range s.visitors {
			if v.WroteSince(begun.Add(50 * time.Millisecond)) {
				t.Error("a write was answered before the replies could come")
			}
		}
		s.heal()
	})
	s.seen = lastLook(t, all).String()
}

// Each byte comes alone.
func TestWireSlicer(t *testing.T) {
	t.Parallel()
	s := stage(t, "the wire carries one byte at a time, both ways", "P1: not noticed", setting{wired: true, logins: true, flags: []string{"-lease", "10s"}})
	s.run(func(ctx context.Context) {
		s.both(rig.Toxic{Type: "slicer", Attributes: map[string]any{"average_size": 1, "size_variation": 0, "delay": 10}})
		if n := s.pieces(s.wires[0].Addr); n < 10 {
			t.Errorf("100 bytes came in %d pieces", n)
		}
		pause(ctx, unlessShort(3*time.Second, 1500*time.Millisecond))
		s.heal()
	})
	s.allAnswered()
}

// There is little bandwidth.
func TestWireNarrow(t *testing.T) {
	t.Parallel()
	s := stage(t, "the wire carries 20 KB/s on each connection", "P1: nothing lost", setting{wired: true, logins: true, flags: []string{"-lease", "10s"}})
	s.run(func(ctx context.Context) {
		s.both(rig.Toxic{Type: "bandwidth", Attributes: map[string]any{"rate": 20}})
		if took := s.pull(s.wires[0].Addr, 20<<10); took < 500*time.Millisecond {
			t.Errorf("20 KB came in %v", took)
		}
		pause(ctx, unlessShort(3*time.Second, 1500*time.Millisecond))
		s.heal()
	})
	s.seen = fmt.Sprintf("%d sessions", s.summary().Sessions)
}
