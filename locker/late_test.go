package locker_test

import (
	"context"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker"
	"github.com/gomodule/redigo/redis"
)

// A renewal may reach Redis minutes after its holder has given up on it, and so may a copy of the take. Neither
// shortens the time that Extend or UnlockAfter has set since. Otherwise another process would get the lock as
// well.
func TestALateCommandDoesNotShortenALock(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]func([]*redis.Pool, locker.Options) locker.Locker{"Spin": spin, "Timestamp": timestamp, "Redlock": redlock} {
		for what, keep := range map[string]func(*locker.Lease, context.Context, time.Duration) error{
			"Extend": (*locker.Lease).Extend, "UnlockAfter": (*locker.Lease).UnlockAfter,
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				t.Parallel()
				server := redistest.Real(t)
				way := redistest.NewProxy(t, server)
				patient := locker.Options{Lease: time.Minute, Timeout: 15 * time.Second} // by default a node of Redlock has 0.2 s
				mine := lock([]*redis.Pool{way.Pool(t, 4)}, patient)
				patient.Wait = locker.NoWait
				other := lock([]*redis.Pool{server.Pool(t, 4)}, patient)
				held, err := mine.Lock(t.Context(), "k")
				if err != nil {
					t.Fatal(err)
				}
				if err := held.Extend(t.Context(), time.Minute); err != nil { // the command of a renewal
					t.Fatal(err)
				}
				sent := way.Commands()
				if err := keep(held, t.Context(), time.Hour); err != nil {
					t.Fatal(err)
				}
				for _, late := range sent {
					args := make([]any, len(late.Args))
					for i, a := range late.Args {
						args[i] = a
					}
					server.Do(t, late.Name, args...)
				}
				if left := server.Do(t, "PTTL", "k").(int64); left < 3_000_000 {
					t.Errorf("the lock is locked for %d ms more, and not for an hour", left)
				}
				if second, err := other.Lock(t.Context(), "k"); err == nil {
					t.Errorf("another process has the lock, too: %v", second)
				}
			})
		}
	}
}

// A client may lose the race for a stale lock by GET and GETSET, and change the value after the winner has
// extended its lock. The winner's next Extend repairs the value, even a shorter one.
func TestAnExtendIsLeftToNoLoser(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	at := func(d time.Duration) string { return strconv.FormatInt(time.Now().Add(d).UnixMilli(), 10) }
	server.Do(t, "SET", "k", at(-time.Minute))
	held, err := timestamp([]*redis.Pool{server.Pool(t, 4)}, locker.Options{}).Lock(t.Context(), "k")
	if err == nil {
		err = held.Extend(t.Context(), time.Hour)
	}
	if err != nil {
		t.Fatal(err)
	}
	server.Do(t, "GETSET", "k", at(time.Second)) // by the loser
	if err := held.Extend(t.Context(), 30*time.Minute); err != nil {
		t.Fatal(err)
	}
	value, err := redis.String(server.Do(t, "GET", "k"), nil)
	if err != nil || value < at(29*time.Minute) {
		t.Errorf("the lock's value is %s, %v: that ends too early", value, err)
	}
}

// A lock that somebody has made permanent still ends with its lease if its holder dies.
func TestAPermanentLockEnds(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	held, err := spin([]*redis.Pool{server.Pool(t, 4)}, locker.Options{}).Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	server.Do(t, "PERSIST", "k")
	if err := held.Extend(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if left := server.Do(t, "PTTL", "k").(int64); left <= 0 || left > 60_000 {
		t.Errorf("the lock ends in %d ms", left)
	}
}

// A lock may be meant to last for ever. A time that Redis cannot express becomes the longest one that it can.
func TestALockForEver(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]func([]*redis.Pool, locker.Options) locker.Locker{"Spin": spin, "Timestamp": timestamp} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Real(t)
			l := lock([]*redis.Pool{server.Pool(t, 4)}, locker.Options{Lease: math.MaxInt64})
			held, err := l.Lock(t.Context(), "k")
			if err != nil {
				t.Fatal(err)
			}
			if err := held.Extend(t.Context(), math.MaxInt64); err != nil {
				t.Error("Extend:", err)
			}
			if err := held.Unlock(t.Context()); err != nil {
				t.Error("Unlock:", err)
			}
			if n := server.Do(t, "EXISTS", "k"); n != int64(0) {
				t.Error("the key is still locked")
			}
		})
	}
}
