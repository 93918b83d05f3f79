package lease

import (
	"fmt"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// While somebody waits, the queue stays, however long that takes.
func TestQueueLasts(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		q := newScripts(t, server)
		q.wantTaken("A", "")
		q.wantHeld("B", "-"+dead("b"))
		server.Do(t, "PEXPIRE", queueKey("k"), 20_000)
		q.wantHeld("B", "-"+dead("b"))
		if ttl, _ := redis.Int64(server.Do(t, "PTTL", queueKey("k")), nil); ttl <= 20_000 {
			t.Errorf("it lasts for %d ms", ttl)
		}
	})
}

// Something else is where the queue should be. It is left as it is, and the lock does
// without.
func TestQueueIsSomethingElse(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		type command []any
		do := func(c command) string { return fmt.Sprint(server.Do(t, c[0].(string), c[1:]...)) }
		key := queueKey("k")
		for name, thing := range map[string]struct{ put, get command }{
			"text": {command{"SET", key, "of somebody else"}, command{"GET", key}},
			"lock": {command{"SET", key, newToken("", time.Now())}, command{"GET", key}},
			"list": {command{"LPUSH", key, "value"}, command{"TYPE", key}},
		} {
			q := newScripts(t, server)
			do(thing.put)
			before := do(thing.get)
			q.wantTaken("A", "")
			found, err := q.spin.Take(t.Context(), "k", "B", "-"+dead("b"), time.Minute)
			if err != nil || found.Queued || found.Joined || found.Taken {
				t.Errorf("%s: Take: %+v, %v", name, found, err)
			}
			if others, err := q.spin.Pass(t.Context(), "k", "A", "C", time.Minute); err != nil || others {
				t.Errorf("%s: Pass: %v, %v", name, others, err)
			}
			if err := q.spin.Quit(t.Context(), "k", "-"+dead("b")); err != nil {
				t.Errorf("%s: Quit: %v", name, err)
			}
			q.releases("C")
			if after := do(thing.get); after != before {
				t.Errorf("%s: it was changed to %s", name, after)
			}
			if q.lock() != "" {
				t.Errorf("%s: the lock holds %q", name, q.lock())
			}
			server.Do(t, "DEL", key)
		}
	})
}

// The queue is in the slot of its lock, and is that of no other lock.
func TestQueueKey(t *testing.T) {
	t.Parallel()
	server := redistest.NewCluster(t, 1, 0).Nodes[0]
	slot := func(key string) int64 {
		n, err := redis.Int64(server.Do(t, "CLUSTER", "KEYSLOT", key), nil)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	seen := map[string]string{}
	for _, key := range []string{
		"k", "a:{b}", "{b}", "{b}.lock", "latchkey:{x}.lock", "{", "a{b", "{{b", "{{b}", "{a{b}", "a{b}{c}", "{}b{c}", "k.queue", "k.queue{k}", "}", "a}", "{}", "{}a", "{}}", "a}b{c", "1}{}", "two words", "", "{}{1}",
	} {
		queue := queueKey(key)
		if other, twice := seen[queue]; twice {
			t.Errorf("%q and %q have the queue %q", key, other, queue)
		}
		seen[queue] = key
		if slot(queue) != slot(key) {
			t.Errorf("%q and its queue %q are in two slots", key, queue)
		}
	}
}
