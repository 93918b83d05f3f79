package locker

import (
	"errors"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// What a Redis user must be allowed for Timestamp at the least: these commands,
// for the locks and the notes.
func TestTimestampLeastRights(t *testing.T) {
	t.Parallel()
	for key, patterns := range map[string][]any{
		"app:{job}": {"~app:*"},
		"app:job":   {"~app:*", "~{app:*}.owner"},
	} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			server := redistest.Real(t)
			rules := []any{"SETUSER", "app", "on", ">pw", "resetkeys", "resetchannels", "-@all",
				"+get", "+set", "+del", "+eval", "+evalsha", "+time"}
			server.Do(t, "ACL", append(rules, patterns...)...)
			o := patient
			o.Policy = LeaseEnd
			timestamp := NewTimestamp(poolAs(t, server, "app"), o)

			l := mustTake(t, timestamp, key)
			mustExtend(t, l)
			mustUnlock(t, l)
			server.Do(t, "SET", key, longAgo)
			l = mustTake(t, timestamp, key)
			if err := l.UnlockAfter(t.Context(), time.Hour); err != nil {
				t.Error(err)
			}
			if _, err := timestamp.Lock(t.Context(), key); !errors.As(err, new(*HeldError)) {
				t.Errorf("Lock of what is shut for an hour: %v", err)
			}
			server.Do(t, "SET", key, "hello")
			if _, err := timestamp.Lock(t.Context(), key); !errors.Is(err, ErrForeign) {
				t.Errorf("Lock of something else: %v", err)
			}
		})
	}
}

// poolAs returns a pool whose connections are those of a Redis user with the
// password pw.
func poolAs(t *testing.T, server *redistest.Server, user string) *redis.Pool {
	pool := &redis.Pool{MaxIdle: 1, Dial: func() (redis.Conn, error) {
		return redis.Dial("tcp", server.Addr, redis.DialUsername(user), redis.DialPassword("pw"))
	}}
	t.Cleanup(func() { pool.Close() })
	return pool
}
