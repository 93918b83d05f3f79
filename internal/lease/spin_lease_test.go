package lease

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// A living holder's lease is extended, by one command every third of it.
func TestSpinWatchdog(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		o := patient
		o.Lease = 3 * s // long enough for a machine that stands still for two
		spin, proxy := newProxied(t, server, o)
		l := mustLock(t, spin, "k")
		eventually(t, "two extensions", func() bool { return proxy.Requests() == 3 })
		mustUnlock(t, l)
		if isLost(l) {
			t.Error("it was lost all the same")
		}
	})
}

// An administrator deletes the key, or Redis evicts it: the holder is told when the
// watchdog looks next.
func TestSpinKeyVanishes(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		o := patient
		o.Lease = 1500 * time.Millisecond
		l := mustLock(t, newProcess(t, server, o), "k")
		ctx, cancel := context.WithCancelCause(t.Context())
		l.OnLost(cancel)
		server.Do(t, "DEL", "k")
		<-l.Lost()
		<-ctx.Done()
		if cause := context.Cause(ctx); !errors.Is(cause, ErrLost) {
			t.Errorf("the context's cause is %v", cause)
		}
		if err := l.Unlock(t.Context()); !errors.Is(err, ErrExpired) {
			t.Errorf("Unlock: %v", err)
		}
	})
}

func TestSpinExtendAndCoolDown(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		l := mustLock(t, newProcess(t, server, patient), "k")
		ttl := func() int64 {
			n, _ := redis.Int64(server.Do(t, "PTTL", "k"), nil)
			return n
		}
		if err := l.Extend(t.Context(), time.Hour); err != nil || ttl() < 3_000_000 {
			t.Errorf("Extend: %v, the key lives for %d ms", err, ttl())
		}
		begin := time.Now()
		if err := l.UnlockAfter(t.Context(), 200*time.Millisecond); err != nil || ttl() > 200 {
			t.Errorf("UnlockAfter: %v, the key lives for %d ms", err, ttl())
		}
		mustUnlock(t, mustLock(t, newProcess(t, server, patient), "k"))
		if waited := time.Since(begin); waited < 200*time.Millisecond {
			t.Errorf("taken again after %v", waited)
		}
	})
}
