package lease

import (
	"errors"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/gomodule/redigo/redis"
)

// scripts are the exchanges of a lock with a queue, one by one.
type scripts struct {
	t      *testing.T
	server *redistest.Server
	spin   Spin
}

func newScripts(t *testing.T, server *redistest.Server) *scripts {
	return &scripts{t, server, Spin{Runner: overPool(server.Pool(t, 2), 10*s)}}
}

// hears makes a place in the queue whose process listens.
func (q *scripts) hears(name string) (place string, messages <-chan string) {
	q.t.Helper()
	channel := channelPrefix + name
	sub, err := transport.NewRedigo(q.server.Pool(q.t, 1), s).Subscribe(q.t.Context(), channel)
	if err != nil {
		q.t.Fatal(err)
	}
	heard := make(chan string, 10)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			m, err := sub.Receive()
			if err != nil {
				return
			}
			heard <- m
		}
	}()
	q.t.Cleanup(func() {
		sub.Close()
		<-ended
	})
	return channel + "/1", heard
}

// message returns the next one, or "" where none comes.
func (q *scripts) message(heard <-chan string) string {
	select {
	case m := <-heard:
		return m
	case <-time.After(5 * s):
		return ""
	}
}

func dead(name string) (place string) { return channelPrefix + name + "/1" }

// asks queues and returns whether the token has the lock.
func (q *scripts) asks(token, place string) bool {
	q.t.Helper()
	found, err := q.spin.Take(q.t.Context(), "k", token, place, time.Minute)
	if err != nil {
		q.t.Fatal(err)
	}
	return found.Taken
}

func (q *scripts) wantTaken(token, place string) {
	q.t.Helper()
	if !q.asks(token, place) {
		q.t.Errorf("%s does not get the lock; it holds %q", token, q.lock())
	}
}

func (q *scripts) wantHeld(token, place string) {
	q.t.Helper()
	if q.asks(token, place) {
		q.t.Errorf("%s got the lock", token)
	}
}

func (q *scripts) releases(token string) {
	q.t.Helper()
	if err := q.spin.Release(q.t.Context(), "k", token, 0); err != nil {
		q.t.Errorf("Release of %s: %v", token, err)
	}
}

func (q *scripts) lock() string {
	q.t.Helper()
	value, _ := q.server.Get(q.t, "k")
	return value
}

func (q *scripts) wantNothing() {
	q.t.Helper()
	if keys := q.server.Keys(q.t); len(keys) > 0 {
		q.t.Errorf("left behind: %q", keys)
	}
}

// The lock goes to the places in their order. Asking twice does not change it. Who is
// not there any more is passed over, and the lock is never free in between.
func TestQueueOrder(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		q := newScripts(t, server)
		b, toB := q.hears("b")
		c, toC := q.hears("c")
		q.wantTaken("A", "")
		q.wantHeld("D", dead("d"))
		q.wantHeld("B", b)
		q.wantHeld("E", dead("e"))
		q.wantHeld("C", c)
		q.wantHeld("B", b)
		q.releases("A")
		if m := q.message(toB); m != b || q.lock() != b {
			t.Errorf("b was told %q, and the lock holds %q", m, q.lock())
		}
		q.wantHeld("C", c)
		q.wantHeld("Z", "")
		q.wantTaken("B", b)
		q.wantTaken("B", b) // a repetition
		q.releases("B")
		if m := q.message(toC); m != c {
			t.Errorf("c was told %q", m)
		}
		q.wantTaken("C", c)
		q.releases("C")
		if len(toB)+len(toC) > 0 {
			t.Error("told more than once")
		}
		q.wantNothing()
	})
}

// A place that cannot be told gets the lock, too, but has to ask for it soon.
func TestQueueOfDeaf(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		q := newScripts(t, server)
		b, _ := q.hears("b")
		for place, patience := range map[string]int64{"-" + dead("d"): 250, b: 1000} {
			q.wantTaken("A", "")
			q.wantHeld("D", place)
			q.releases("A")
			ttl, _ := redis.Int64(server.Do(t, "PTTL", "k"), nil)
			if q.lock() != place || ttl > patience || ttl < patience-200 {
				t.Errorf("the lock holds %q for %d ms", q.lock(), ttl)
			}
			q.wantTaken("D", place)
			if ttl, _ := redis.Int64(server.Do(t, "PTTL", "k"), nil); ttl < 50_000 {
				t.Errorf("the lease lasts %d ms", ttl)
			}
			q.releases("D")
			q.wantNothing()
		}
	})
}

// Whoever has the lock has no place, however it came to that.
func TestQueueWinnerHasNoPlace(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		q := newScripts(t, server)
		q.wantTaken("A", "")
		for _, name := range []string{"b", "c", "d"} {
			q.wantHeld(name, "-"+dead(name))
		}
		server.Do(t, "DEL", "k") // the lease is over
		q.wantTaken("C", "-"+dead("c"))
		if places, _ := server.Get(t, queueKey("k")); places != "-"+dead("b")+" -"+dead("d")+" " {
			t.Errorf("in the queue: %q", places)
		}
	})
}

// Quit takes a place out, wherever it is, and gives the lock on if the turn has come.
func TestQueueQuit(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		q := newScripts(t, server)
		quit := func(name string) {
			t.Helper()
			for range 2 { // once is as good as twice
				if err := q.spin.Quit(t.Context(), "k", "-"+dead(name)); err != nil {
					t.Error(err)
				}
			}
		}
		quit("a")
		q.wantNothing()
		q.wantTaken("A", "")
		for _, name := range []string{"a", "b", "c", "d", "e", "aa", "bb"} {
			q.wantHeld(name, "-"+dead(name))
		}
		quit("a")
		quit("c")
		quit("bb")
		if places, _ := server.Get(t, queueKey("k")); places != "-"+dead("b")+" -"+dead("d")+" -"+dead("e")+" -"+dead("aa")+" " {
			t.Errorf("in the queue: %q", places)
		}
		q.releases("A")
		quit("d")
		quit("b") // has the turn
		if q.lock() != "-"+dead("e") {
			t.Errorf("the lock holds %q", q.lock())
		}
		quit("e")
		quit("aa")
		q.wantNothing()
	})
}

// Pass gives on what is held and nothing else.
func TestQueuePass(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		q := newScripts(t, server)
		wantPass := func(from, to string, others bool, err error) {
			t.Helper()
			if got, e := q.spin.Pass(t.Context(), "k", from, to, time.Minute); !errors.Is(e, err) || got != others {
				t.Errorf("Pass from %s to %s: %v, %v", from, to, got, e)
			}
		}
		wantPass("A", "B", false, ErrExpired)
		q.wantTaken("A", "")
		wantPass("A", "B", false, nil)
		wantPass("A", "B", false, nil) // a repetition
		wantPass("A", "C", false, ErrLost)
		if q.lock() != "B" {
			t.Errorf("the lock holds %q", q.lock())
		}
		q.wantHeld("D", "-"+dead("d"))
		wantPass("B", "C", true, nil)
		if err := q.spin.Extend(t.Context(), "k", "B", time.Hour); !errors.Is(err, ErrLost) {
			t.Errorf("Extend of an old token: %v", err)
		}
		q.releases("C")
		wantPass("C", "E", false, ErrLost) // it is D's turn
		q.wantTaken("D", "-"+dead("d"))
		q.releases("D")
		q.wantNothing()
	})
}
