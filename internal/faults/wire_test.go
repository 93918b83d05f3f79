package faults

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
)

// both makes trouble on all wires, in both directions.
func (s *scene) both(trouble rig.Trouble) {
	for _, w := range s.wires {
		up, down := trouble, trouble
		w.Trouble(&up, &down)
	}
}

// heal ends all trouble on all wires.
func (s *scene) heal() {
	for _, w := range s.wires {
		w.Heal()
	}
}

// The wire is slow: by less than the time-out, so that nothing may fail; by about as much, so that
// some replies come in time and others do not; or since each byte comes alone.
func TestWireSlow(t *testing.T) {
	for _, slow := range []struct {
		how, promise string
		trouble      rig.Trouble
		refuses      bool
	}{
		{"the wire is slow by 0.3 s ± 0.1 s each way", "P1, P8: all is answered", rig.Trouble{Latency: 300 * time.Millisecond, Jitter: 100 * time.Millisecond}, false},
		{"the wire is slow by 1 s ± 0.5 s each way", "P8: nothing lost, back by itself", rig.Trouble{Latency: time.Second, Jitter: 500 * time.Millisecond}, true},
		{"the wire carries one byte at a time, both ways", "P1: not noticed", rig.Trouble{Bytewise: true}, false},
	} {
		t.Run(slow.how, func(t *testing.T) {
			with := setting{apart: slow.refuses, wired: true, logins: true}
			if !slow.refuses {
				with.flags = []string{"-lease", "10s"}
			}
			s := stage(t, slow.how, slow.promise, with)
			s.run(func(ctx context.Context) {
				s.both(slow.trouble)
				pause(ctx, unlessShort(5*time.Second, 3*time.Second))
				s.heal()
			})
			if !slow.refuses {
				s.allAnswered()
			} else {
				happened(t, "a reply came too late", s.summary().Silent, 1)
			}
		})
	}
}

// All connections of all demos are broken, and new ones are refused: for a moment, and for longer
// than a lease, so that holders come back to sessions that others may have taken. A site without
// Redis answers 503 at once to requests with a session.
func TestWireCut(t *testing.T) {
	for what, length := range map[string]time.Duration{"half a lease": lease / 2, "2.5 leases": 5 * lease / 2} {
		t.Run(what, func(t *testing.T) {
			s := stage(t, "connections cut, and new connections refused, for "+what, "P3, P8: 503 at once, back by itself",
				setting{apart: length > lease, wired: true, logins: true})
			g := s.guest(s.demos[0])
			s.run(func(ctx context.Context) {
				for _, w := range s.wires {
					w.Cut()
				}
				for _, d := range s.demos {
					begun := time.Now()
					g.must("a write without Redis", g.post(d, "/incr"), http.StatusServiceUnavailable, "")
					within(t, "the answer without Redis", begun, time.Second)
				}
				pause(ctx, length)
				for _, w := range s.wires {
					w.Join(t)
				}
			})
			s.backWithin(2 * lease)
		})
	}
}

// All packets are lost. Connections stay open, and new ones are accepted.
func TestWireBlackHole(t *testing.T) {
	s := stage(t, "the wire is a black hole for 3 s, for new connections, too", "P8: 503 in time, back by itself", setting{apart: true, wired: true, logins: true})
	g := s.guest(s.demos[0])
	s.run(func(ctx context.Context) {
		s.both(rig.Trouble{Lose: true})
		begun := time.Now()
		g.must("a write into the hole", g.post(s.demos[0], "/incr"), http.StatusServiceUnavailable, "")
		within(t, "a write into the hole", begun, timeout*5/4)
		pause(ctx, 3*time.Second-time.Since(begun))
		s.heal()
	})
	s.backWithin(timeout + 2*lease)
}

// One process is cut off from Redis, while another is not. The network keeps what was on
// its way, and delivers it in the end. The process that is cut off must hold no session
// for longer than a lease and answer 503, and its late commands must change nothing.
func TestWirePartition(t *testing.T) {
	s := stage(t, "one process cut off for longer than the lease", "P3, P7: others take over in time, nothing stale", setting{
		apart: true, wired: true, logins: true, flags: []string{"-work", "300ms"}})
	alone, other := s.demos[0], s.demos[1]
	g := s.guest(alone)
	g.mustSet(alone, "before")
	s.run(func(ctx context.Context) {
		h := s.holdAs(g, alone, "stale")
		s.wires[0].Trouble(&rig.Trouble{Hold: true}, &rig.Trouble{Hold: true})
		begun := time.Now()
		g.must("a write to another process", g.set(other, "rightful"), http.StatusOK, "ok")
		s.seen = "taken over in " + within(t, "the other process", begun, lease+2*time.Second).Round(time.Millisecond).String()
		g.must("a write to the process that is cut off", g.post(alone, "/incr"), http.StatusServiceUnavailable, "")
		g.must("a read from the process that is cut off", g.get(alone, "/params"), http.StatusServiceUnavailable, "")
		g.must("the stale write", <-h.replies, http.StatusServiceUnavailable, "")
		pause(ctx, lease+time.Second-time.Since(begun))
		s.heal()
	})
	for _, d := range s.demos {
		g.mustHave(d, "before", "rightful")
	}
}
