package lease

import (
	"errors"
	"testing"

	"github.com/a2139e8d/latchkey/testdata/redistest"
)

// A Redis that is full refuses what needs memory, and takes out of the queue whoever
// gives up: a place that stayed would hold up the lock when its turn comes.
func TestQuitWhileRedisIsFull(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	q := newScripts(t, server)
	place := func(name string) string { return "-" + dead(name) }
	wantQueue := func(want string) {
		t.Helper()
		if places, _ := server.Get(t, queueKey("k")); places != want {
			t.Errorf("in the queue: %q, want %q", places, want)
		}
	}
	quit := func(name string) {
		t.Helper()
		if err := q.spin.Quit(t.Context(), "k", place(name)); err != nil {
			t.Error(err)
		}
	}
	q.wantTaken("A", "")
	for _, name := range []string{"b", "c", "d"} {
		q.wantHeld(name, place(name))
	}
	server.Do(t, "CONFIG", "SET", "maxmemory", 1)
	before, _ := server.Get(t, queueKey("k"))
	if _, err := q.spin.Take(t.Context(), "k", "E", place("e"), s); !errors.Is(err, ErrUnavailable) {
		t.Errorf("joining: %v", err)
	}
	wantQueue(before)
	quit("c")
	wantQueue(place("b") + " " + place("d") + " ")
	quit("b")
	quit("d")
	wantQueue("")
	quit("d")
	server.Do(t, "CONFIG", "SET", "maxmemory", 0)
	q.releases("A")
	q.wantNothing()
}
