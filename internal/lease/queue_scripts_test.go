package lease

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/fakeredis"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/gomodule/redigo/redis"
)

// scripts sends the round trips of a lock with a queue, one by one.
type scripts struct {
	t      *testing.T
	server *redistest.Server
	spin   Spin
}

func newScripts(t *testing.T, server *redistest.Server) *scripts {
	return newScriptsOver(t, server, server.Pool(t, 2))
}

func newScriptsOver(t *testing.T, server *redistest.Server, pool *redis.Pool) *scripts {
	client := transport.NewRedigo(pool, patient.Timeout)
	t.Cleanup(func() { client.Close() })
	return &scripts{t, server, Spin{Runner: scripting.NewRunner(client, patient.Timeout)}}
}

// hears names a place whose process listens, and returns the messages that it gets.
func (q *scripts) hears(name string) (place string, heard <-chan string) {
	q.t.Helper()
	channel := channelPrefix + name
	sub, err := transport.NewRedigo(q.server.Pool(q.t, 1), patient.Timeout).Subscribe(q.t.Context(), channel)
	if err != nil {
		q.t.Fatal(err)
	}
	messages := make(chan string, 10)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			m, err := sub.Receive()
			if err != nil {
				return
			}
			messages <- m
		}
	}()
	q.t.Cleanup(func() {
		sub.Close()
		<-ended
	})
	return channel + "/1", messages
}

// message returns the next one, or "" if none comes.
func (q *scripts) message(heard <-chan string) string {
	select {
	case m := <-heard:
		return m
	case <-time.After(30 * s):
		return ""
	}
}

func dead(name string) (place string) { return channelPrefix + name + "/1" }

// deaf is a place that cannot be notified.
func deaf(name string) (place string) { return "-" + dead(name) }

// take asks for the lock.
func (q *scripts) take(token, place string) Attempt {
	q.t.Helper()
	found, err := q.spin.Take(q.t.Context(), "k", token, place, time.Minute)
	if err != nil {
		q.t.Fatal(err)
	}
	return found
}

func (q *scripts) wantTaken(token, place string) {
	q.t.Helper()
	if found := q.take(token, place); !found.Taken {
		q.t.Errorf("%s does not get the lock; it holds %q", token, q.lock())
	}
}

func (q *scripts) wantHeld(token, place string) {
	q.t.Helper()
	if found := q.take(token, place); found.Taken || found.Queued != (place != "") {
		q.t.Errorf("%s at %q: %+v", token, place, found)
	}
}

func (q *scripts) releases(token string) {
	q.t.Helper()
	if err := q.spin.Release(q.t.Context(), "k", token, 0); err != nil {
		q.t.Errorf("Release of %s: %v", token, err)
	}
}

// quit gives up a place, twice: the second time changes nothing.
func (q *scripts) quit(place string) {
	q.t.Helper()
	for range 2 {
		wantError(q.t, q.spin.Quit(q.t.Context(), "k", place), nil)
	}
}

func (q *scripts) lock() string {
	q.t.Helper()
	value, _ := q.server.Get(q.t, "k")
	return value
}

// wantLock checks the lock's value, and roughly how long it lasts.
func (q *scripts) wantLock(value string, ttl time.Duration) {
	q.t.Helper()
	ms, _ := redis.Int64(q.server.Do(q.t, "PTTL", "k"), nil)
	if left := time.Duration(ms) * time.Millisecond; q.lock() != value || left > ttl || left < ttl*3/4 && !q.server.IsReal() {
		q.t.Errorf("the lock holds %q for %v, want %q for %v", q.lock(), left, value, ttl)
	}
}

func (q *scripts) wantQueue(places ...string) {
	q.t.Helper()
	if got := queued(q.t, q.server); strings.Join(got, " ") != strings.Join(places, " ") {
		q.t.Errorf("in the queue: %q, want %q", got, places)
	}
}

func (q *scripts) wantNothing() {
	q.t.Helper()
	if keys := q.server.Keys(q.t); len(keys) > 0 {
		q.t.Errorf("left behind: %q", keys)
	}
}

// withMemory runs f on a Redis that has memory left, and on one that is full. Locks and queues still work on a
// full one.
func withMemory(t *testing.T, f func(t *testing.T, q *scripts)) {
	t.Parallel()
	for name, full := range map[string]bool{"with memory": false, "full": true} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, server *redistest.Server) {
				if full && server.IsReal() {
					server.Do(t, "CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", 1)
				} else if full {
					server.Fake(func(r *fakeredis.Server) { r.Full = true })
				}
				f(t, newScripts(t, server))
			})
		})
	}
}

// Quit takes a place out, wherever it is. If the turn of the place had come, Quit gives the lock to the next one.
// A holder has no place in the queue, even if it took the lock without its turn.
func TestQueueQuit(t *testing.T) {
	withMemory(t, func(t *testing.T, q *scripts) {
		q.quit(deaf("a"))
		q.wantNothing()
		q.wantTaken("A", "")
		for _, name := range []string{"a", "b", "c", "d", "e", "aa", "bb", "f"} {
			q.wantHeld(name, deaf(name))
		}
		q.quit(deaf("a"))
		q.quit(deaf("c"))
		q.quit(deaf("bb"))
		q.wantQueue(deaf("b"), deaf("d"), deaf("e"), deaf("aa"), deaf("f"))
		q.server.Do(t, "DEL", "k") // the lease has ended
		q.wantTaken("E", deaf("e"))
		q.wantQueue(deaf("b"), deaf("d"), deaf("aa"), deaf("f"))
		q.releases("E")
		q.quit(deaf("d"))
		q.quit(deaf("b")) // it has the turn
		q.wantLock(deaf("aa"), s/4)
		q.quit(deaf("aa"))
		q.quit(deaf("f"))
		q.wantNothing()
	})
}

// Pass gives the lock on only if the token has it.
func TestQueuePass(t *testing.T) {
	withMemory(t, func(t *testing.T, q *scripts) {
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
		q.wantLock("B", time.Minute)
		q.wantHeld("D", deaf("d"))
		wantPass("B", "C", true, nil)
		wantError(t, q.spin.Extend(t.Context(), "k", "B", time.Hour), ErrLost)
		q.releases("C")
		wantPass("C", "E", false, ErrLost) // it is D's turn
		q.wantTaken("D", deaf("d"))
		q.releases("D")
		q.wantNothing()
	})
}

// While a process waits, the queue does not expire, however long that takes.
func TestQueueLasts(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		q := newScripts(t, server)
		q.wantTaken("A", "")
		q.wantHeld("B", deaf("b"))
		server.Do(t, "PEXPIRE", queueKey("k"), 20_000)
		q.wantHeld("B", deaf("b"))
		if ttl, _ := redis.Int64(server.Do(t, "PTTL", queueKey("k")), nil); ttl <= 20_000 {
			t.Errorf("the queue lasts for %d ms", ttl)
		}
	})
}

// Another value is where the queue should be. That value stays as it is, and the lock works without a queue.
func TestQueueIsSomethingElse(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		key := queueKey("k")
		q := newScripts(t, server)
		for _, put := range [][]any{
			{"SET", key, "of somebody else"},
			{"SET", key, NewToken(BondOf("k"), "", time.Now())},
			{"LPUSH", key, "of somebody else"},
		} {
			server.Do(t, put[0].(string), put[1:]...)
			q.wantTaken("A", "")
			if found := q.take("B", deaf("b")); found.Queued || found.Joined || found.Taken {
				t.Errorf("%v: Take: %+v", put, found)
			}
			if others, err := q.spin.Pass(t.Context(), "k", "A", "C", time.Minute); err != nil || others {
				t.Errorf("%v: Pass: %v, %v", put, others, err)
			}
			q.quit(deaf("b"))
			q.releases("C")
			var after any
			if put[0] == "SET" {
				after, _ = server.Get(t, key)
			} else {
				after = server.Do(t, "LPUSH", key, "more") == int64(2)
			}
			if after != put[2] && after != true || q.lock() != "" {
				t.Errorf("%v: the value has become %v, and the lock holds %q", put, after, q.lock())
			}
			server.Do(t, "DEL", key)
		}
	})
}

// The queue is in the slot of its lock, and no two locks share a queue. The channel of a place is in the same
// slot, and its name is one word.
func TestQueueKey(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, key := range []string{
		"k", "a:{b}", "{b}", "{b}.lock", "latchkey:{x}.lock", "{", "a{b", "{{b", "{{b}", "{a{b}", "a{b}{c}", "{}b{c}",
		"k.queue", "k.queue{k}", "}", "a}", "{}", "{}a", "{}}", "a}b{c", "1}{}", "two words", "{two words}", "two {words}", "line\n", "", "{}{1}",
	} {
		queue := queueKey(key)
		if other, twice := seen[queue]; twice {
			t.Errorf("%q and %q have the queue %q", key, other, queue)
		}
		seen[queue] = key
		if slot(hashed(queue)) != slot(hashed(key)) {
			t.Errorf("%q and its queue %q are in two slots", key, queue)
		}
		if tag := channelTag(key); slot(hashed(tag)) != slot(hashed(key)) || len(strings.Fields(tag)) != 1 {
			t.Errorf("%q has the channel tag %q", key, tag)
		}
	}
}

// Our slot of a key is the one that Redis computes.
func TestSlot(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t, "--cluster-enabled", "yes")
	for _, key := range []string{"", "k", "a:{b}", "{}a", "{", "a{b}{c}", "{}}", "two words", "\x00\xff"} {
		if want := server.Do(t, "CLUSTER", "KEYSLOT", key); int64(slot(hashed(key))) != want {
			t.Errorf("the slot of %q is %d, want %d", key, slot(hashed(key)), want)
		}
	}
}

// Places of processes that have died cost nothing, even while an operator subscribes to all channels. But without
// the right to ask Redis who listens to one channel, the script takes that operator for the process.
func TestTheDeadAreNotTakenForListening(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	living, heard := newScripts(t, server).hears("living")
	users := 0
	for _, listener := range []bool{false, true} {
		if listener {
			operator := server.Pool(t, 1).Get()
			defer operator.Close()
			if _, err := operator.Do("PSUBSCRIBE", "*"); err != nil {
				t.Fatal(err)
			}
		}
		for name, tt := range map[string]struct {
			rights   []any
			told     bool // the living process
			mistaken bool
		}{
			"all of it":          {[]any{"+publish", "+pubsub|numsub"}, true, false},
			"no publish":         {[]any{"+pubsub|numsub"}, false, false},
			"no pubsub":          {[]any{"+publish"}, true, true},
			"another subcommand": {[]any{"+publish", "+pubsub|numpat"}, true, true},
		} {
			t.Log(name, "with a listener to all:", listener)
			user := addUser(t, server, &users, append(tt.rights, "~*", "&latchkey:wake:*")...)
			q := newScriptsOver(t, server, poolAs(t, server, user))
			q.wantTaken("A", "")
			q.wantHeld("B", dead("one"))
			q.wantHeld("C", dead("two"))
			q.wantHeld("D", living)
			q.releases("A")
			want := living
			if tt.mistaken && listener {
				want = dead("one")
			}
			q.wantLock(want, s)
			if tt.told && want == living && q.message(heard) != living+" k" {
				t.Error("the living process was not notified")
			}
			server.Do(t, "DEL", "k", queueKey("k"))
		}
	}
}
