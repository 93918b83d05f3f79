package lease

import (
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// full makes a real Redis refuse all that needs memory.
func full(t *testing.T, server *redistest.Server) {
	t.Helper()
	server.Do(t, "CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", 1)
}

// A lock is taken, given back and passed on, however full Redis is.
func TestLocksWhileRedisIsFull(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	q := newScripts(t, server)
	full(t, server)
	q.wantTaken("A", "")
	if others, err := q.spin.Pass(t.Context(), "k", "A", "B", s); others || err != nil {
		t.Errorf("Pass: %v, %v", others, err)
	}
	q.releases("B")
	q.wantTaken("C", "")
	q.releases("C")
	q.wantNothing()
}

// So are the places in the queue: the first has the turn, as ever.
func TestQueueWhileRedisIsFull(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	q := newScripts(t, server)
	b, _ := q.hears("b")
	c, _ := q.hears("c")
	q.wantTaken("A", "")
	q.wantHeld("B", b)
	full(t, server)
	q.wantHeld("C", c)
	q.releases("A")
	if q.lock() != b {
		t.Errorf("the lock holds %q, want the first place", q.lock())
	}
	q.wantTaken("B", b)
	q.releases("B")
	q.wantTaken("C", c)
	q.releases("C")
	q.wantNothing()
}

// Who gives up leaves the queue: a place that stayed would hold up the lock when its turn comes.
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
	full(t, server)
	quit("c")
	wantQueue(place("b") + " " + place("d") + " ")
	quit("b")
	quit("d")
	wantQueue("")
	quit("d")
	q.releases("A")
	q.wantNothing()
}
