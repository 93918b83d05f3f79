package store

import (
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/locker"
	"github.com/a2139e8d/latchkey/testdata/redistest"
	"github.com/gomodule/redigo/redis"
)

// What a Redis user must be allowed at the least, as REDIS.md says.
var leastRights = []any{
	"on", ">pw", "resetkeys", "~app:*", "resetchannels", "-@all",
	"+ping", "+get", "+mget", "+getrange", "+set", "+del", "+pexpire", "+pttl", "+rename", "+eval", "+evalsha",
}

func TestLeastRightsSuffice(t *testing.T) {
	t.Parallel()
	for name, withLocker := range map[string]bool{"beside": false, "elsewhere": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Real(t)
			s.Do(t, "ACL", append([]any{"SETUSER", "app"}, leastRights...)...)
			o := Options{Prefix: "app:", Lease: 1500 * time.Millisecond, Timeout: 20 * time.Second}
			st := opened(t, "redis://app:pw@"+s.Addr, o)
			if withLocker {
				pool := s.Pool(t, 1)
				pool.Dial = func() (redis.Conn, error) { return redis.DialURL("redis://app:pw@" + s.Addr) }
				o.Locker = locker.NewSpin(pool, locker.Options{Lease: o.Lease})
				st = New(pool, o)
			}
			useEverything(t, s, st)
		})
	}
}

func useEverything(t *testing.T, s *redistest.Server, st *Store) {
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(st.Ping(ctx))
	create(t, st, "1")
	h := take(t, st)
	waitUntilExtended(t, s, "app:{"+theID+"}.lock")
	must(h.Save(ctx, []byte("2")))
	must(take(t, st).Save(ctx, []byte(large("2"))))
	must(take(t, st).Touch(ctx))
	take(t, st).Release(ctx)
	_, err := st.Load(ctx, theID, Terms{})
	must(err)
	must(take(t, st).Renew(ctx, newID, []byte("3")))
	_, err = st.Take(ctx, theID, Terms{})
	wantError(t, "Take of a renewed id", err, ErrGone)
	h, err = st.Take(ctx, newID, Terms{})
	must(err)
	wantError(t, "Renew to an id in use", h.Renew(ctx, theID, []byte("4")), ErrCorrupt)
	h, err = st.Take(ctx, newID, Terms{})
	must(err)
	must(h.Destroy(ctx))
	_, err = st.Load(ctx, "unknown", Terms{})
	wantError(t, "Load of an unknown id", err, ErrNotFound)
	_, err = st.Take(ctx, "unknown", Terms{})
	wantError(t, "Take of an unknown id", err, ErrNotFound)
}

// waitUntilExtended returns when the watchdog has put off the end of a lease.
func waitUntilExtended(t *testing.T, s *redistest.Server, lock string) {
	t.Helper()
	last := expiry(t, s, lock)
	eventually(t, "the lease is extended", func() bool {
		before := last
		last = expiry(t, s, lock)
		return last > before
	})
}
