package faults

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
	"github.com/a2139e8d/latchkey/internal/redistest"
)

// The slots of two sessions are left half-moved, as by an operator whose tool has died. The record
// of one is still with the old master, that of the other is with the new one. Redis does not run
// scripts with keys on either side, so writes may be refused until the move is over; reads are not,
// and no write is answered that is not there in the end. Nobody else notices.
func TestClusterSlotsHalfMoved(t *testing.T) {
	eachClient(t, func(t *testing.T, client string) {
		lasts := unlessShort(time.Minute, 10*time.Second)
		s := stageCluster(t, client, fmt.Sprintf("two slots half-moved for %v", lasts),
			// Without logins: of so many new ids some would be in these slots.
			"P15: their sessions can be read, writes are 503 or done; others do not notice", setting{})
		var counts [2]*halfMoved
		s.run(func(ctx context.Context) {
			for i := range counts {
				counts[i] = s.halfMove(i == 1)
			}
			done := make(chan bool)
			for _, h := range counts {
				go func() { h.use(time.Now().Add(lasts)); done <- true }()
			}
			for range counts {
				<-done
			}
			for _, h := range counts {
				s.cluster.FinishMove(t, h.move)
				h.mustBeWell()
			}
		})
		s.seen = fmt.Sprintf("%d reads; %d writes answered, %d refused; ASK %d, TRYAGAIN %d times", counts[0].reads+counts[1].reads,
			counts[0].writes+counts[1].writes, counts[0].unknown+counts[1].unknown, s.refusals("ASK"), s.refusals("TRYAGAIN"))
		if s.refusals("ASK") == 0 || s.refusals("TRYAGAIN") == 0 {
			t.Error("no client met a slot that was half-moved")
		}
		s.allAnswered()
	})
}

// A halfMoved is a guest whose session is in a slot that is half-moved.
type halfMoved struct {
	*scene
	guest *guest
	move  redistest.SlotMove

	reads, writes, unknown int
}

// halfMove begins to move the slot of a new guest's session, and moves its keys if it should.
func (s *scene) halfMove(keys bool) *halfMoved {
	s.Helper()
	h := &halfMoved{scene: s, guest: s.guest(s.demos[0])}
	h.write(0)
	key := rig.RecordKey(s.T, h.guest.cookie)
	to := s.cluster.Masters(s.T)[0]
	if to == s.at(key) {
		to = s.cluster.Masters(s.T)[1]
	}
	h.move = s.cluster.BeginMove(s.T, s.cluster.Slot(s.T, key), to)
	if keys {
		s.cluster.MoveKeys(s.T, h.move)
	}
	return h
}

// use reads and writes until a moment.
func (h *halfMoved) use(until time.Time) {
	for n := 0; time.Now().Before(until); n++ {
		h.read(n)
		h.write(n)
	}
}

// read asserts that the number is right: of the writes without an answer any may have been done.
func (h *halfMoved) read(turn int) {
	got := h.guest.get(h.demos[turn%2], "/count")
	var n int
	if _, err := fmt.Sscan(got.text, &n); err != nil || got.status != 200 || n < h.writes || n > h.writes+h.unknown {
		h.Errorf("a read: %d %q, after %d writes and %d that may be done", got.status, got.text, h.writes, h.unknown)
	}
	h.reads++
}

// write asserts that it is answered in time, with the right number or a 503.
func (h *halfMoved) write(turn int) {
	got := h.guest.post(h.demos[turn%2], "/incr")
	var n int
	switch {
	case got.took > h.longest:
		h.Errorf("a write took %v", got.took)
	case got.status == 503:
		h.unknown++
	case got.status == 200 && got.cookie == "":
		if _, err := fmt.Sscan(got.text, &n); err != nil || n <= h.writes || n > h.writes+h.unknown+1 {
			h.Errorf("a write: %q, after %d and %d that may be done", got.text, h.writes, h.unknown)
		}
		h.writes, h.unknown = n, h.unknown-(n-1-h.writes)
	default:
		h.Errorf("a write: %d %q, cookie %q", got.status, got.text, got.cookie)
	}
}

// mustBeWell asserts that the session can be written to, as soon as a lock may be over that nobody
// could release.
func (h *halfMoved) mustBeWell() {
	h.Helper()
	before, begun := h.writes, time.Now()
	for h.writes == before && time.Since(begun) < recovery {
		h.write(0)
	}
	if h.writes == before {
		h.Errorf("no write for %v after the slot has moved", recovery)
	}
	h.read(1)
}
