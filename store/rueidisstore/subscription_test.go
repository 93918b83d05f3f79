package rueidisstore

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/gomodule/redigo/redis"
)

// kinds are the ways of subscribing, with their commands to publish and to count.
var kinds = map[string]struct {
	subscribe      func(c *client, ctx context.Context, channel string) (transport.Subscription, error)
	publish, count string
}{
	"plain": {(*client).Subscribe, "PUBLISH", "NUMSUB"},
	"shard": {(*client).SubscribeShard, "SPUBLISH", "SHARDNUMSUB"},
}

func listeners(t testing.TB, s *redistest.Server, count, channel string) int {
	t.Helper()
	values, err := redis.Values(s.Do(t, "PUBSUB", count, channel), nil)
	if err != nil {
		t.Fatal(err)
	}
	return number(t, values[1])
}

// A closed subscription soon does not count as a listener any more. The client may subscribe to the same channel at once,
// and misses no message from then on.
func TestSubscribeAgain(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	for name, kind := range kinds {
		c := opened(t, at(s), patient.Timeout)
		channel := "channel-" + name
		for i := range 30 {
			sub, err := kind.subscribe(c, t.Context(), channel)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			s.Do(t, kind.publish, channel, i)
			if got, err := sub.Receive(); got != fmt.Sprint(i) || err != nil {
				t.Fatalf("%s: message %d is %q, %v", name, i, got, err)
			}
			if err := sub.Close(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		redistest.Eventually(t, "no client listens", func() bool { return listeners(t, s, kind.count, channel) == 0 })
	}
}

// A listener that is slow, or does not receive at all, does not delay the others on its connection.
func TestSlowListener(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	c := opened(t, at(s), patient.Timeout)
	sub, err := c.Subscribe(t.Context(), "channel")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	const flood = "for i = 1, tonumber(ARGV[1]) do redis.call('PUBLISH', 'channel', i) end"
	s.Do(t, "EVAL", flood, 0, 1000)
	do(t, c, "", transport.Command{"PING"})
	for i := range 1000 {
		if got, err := sub.Receive(); got != fmt.Sprint(i+1) || err != nil {
			t.Fatalf("message %d is %q, %v", i, got, err)
		}
	}
	s.Do(t, "EVAL", flood, 0, maxUnread+1)
	do(t, c, "", transport.Command{"PING"})
	redistest.Eventually(t, "it is given up", func() bool {
		own := sub.(*subscription)
		own.mu.Lock()
		defer own.mu.Unlock()
		return own.err != nil
	})
	for err = nil; err == nil; {
		_, err = sub.Receive()
	}
	redistest.Eventually(t, "a subscription that is not received ends", func() bool { return listeners(t, s, "NUMSUB", "channel") == 0 })
}

// A subscription that is made while Redis does not reply fails by the deadline, and leaves nothing behind
// when Redis comes back.
func TestSubscribeInVain(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	c := opened(t, at(s), patient.Timeout)
	do(t, c, "", transport.Command{"PING"})
	s.Pause(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Subscribe(ctx, "channel"); err == nil {
		t.Error("the client is subscribed")
	}
	s.Resume(t)
	do(t, c, "", transport.Command{"PING"})
	redistest.Eventually(t, "no client listens", func() bool { return listeners(t, s, "NUMSUB", "channel") == 0 })
}

// P7: a subscription ends while Redis refuses commands, and the process goes on. Rueidis ends the process if UNSUBSCRIBE, or
// the PING that it sends behind it, is refused.
func TestASubscriptionEndsWhileRedisRefuses(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]func(t *testing.T, s *redistest.Server){
		"BUSY": func(t *testing.T, s *redistest.Server) {
			s.Do(t, "CONFIG", "SET", "busy-reply-threshold", 1)
			conn, err := redis.DialURL(s.URL)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			_ = conn.Send("EVAL", "while true do end", 0) // until the server ends
			_ = conn.Flush()
		},
		"MISCONF": func(t *testing.T, s *redistest.Server) {
			dir, err := redis.Strings(s.Do(t, "CONFIG", "GET", "dir"), nil)
			if err == nil {
				err = os.MkdirAll(filepath.Join(dir[1], "dump.rdb", "full"), 0o700)
			}
			if err != nil {
				t.Fatal(err)
			}
			s.Do(t, "CONFIG", "SET", "save", "3600 1000000")
			s.Do(t, "BGSAVE")
		},
		"MASTERDOWN": func(t *testing.T, s *redistest.Server) {
			s.Do(t, "CONFIG", "SET", "replica-serve-stale-data", "no")
			s.Do(t, "REPLICAOF", "127.0.0.1", 9)
		},
	} {
		for _, resp2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/RESP2=%v", name, resp2), func(t *testing.T) {
				t.Parallel()
				s := redistest.Real(t)
				o := at(s)
				o.AlwaysRESP2 = resp2
				c := opened(t, o, patient.Timeout)
				sub, err := c.Subscribe(t.Context(), "channel")
				if err != nil {
					t.Fatal(err)
				}
				refuse(t, s)
				redistest.Eventually(t, "Redis refuses", func() bool {
					replies, err := c.Do(t.Context(), "", transport.Command{"PING"})
					return err == nil && strings.HasPrefix(fmt.Sprint(replies[0]), name)
				})
				if err := sub.Close(); err != nil {
					t.Error(err)
				}
				<-sub.(*subscription).over
			})
		}
	}
}
