package lease

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// Many callers in several processes count with a variable that only the lock
// guards. None of them may miss what another wrote.
func TestSpinExcludes(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		const processes, callers, times = 3, 8, 5
		n := 0
		var all sync.WaitGroup
		for range processes {
			spin := newProcess(t, server, patient)
			for range callers {
				all.Go(func() {
					for range times {
						l, err := spin.Lock(t.Context(), "k")
						if err != nil {
							t.Error(err)
							return
						}
						read := n
						runtime.Gosched() // an invitation to all that are not kept out
						n = read + 1
						mustUnlock(t, l)
					}
				})
			}
		}
		all.Wait()
		if n != processes*callers*times {
			t.Errorf("counted %d of %d", n, processes*callers*times)
		}
		if keys := server.Keys(t); len(keys) != 0 {
			t.Errorf("left behind: %q", keys)
		}
	})
}

// A lock is a key that holds a token made for this one lease.
func TestSpinKey(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		spin := newProcess(t, server, patient)
		seen := map[string]bool{}
		for range 20 {
			l := mustLock(t, spin, "k")
			token, _ := server.Get(t, "k")
			if len(token) < IDLength || seen[token] {
				t.Errorf("token %q", token)
			}
			seen[token] = true
			ttl, err := redis.Int64(server.Do(t, "PTTL", "k"), nil)
			if err != nil || ttl <= 0 || ttl > patient.Lease.Milliseconds() {
				t.Errorf("the key lives for %d ms: %v", ttl, err)
			}
			mustUnlock(t, l)
			if server.Exists(t, "k") {
				t.Error("Unlock left the key")
			}
		}
	})
}

// While one process has the lock, another tries again and again, until it is free.
func TestSpinWaits(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		l := mustLock(t, newProcess(t, server, patient), "k")
		other, proxy := newProxied(t, server, patient)
		got := make(chan *Lease)
		go func() {
			l, err := other.Lock(t.Context(), "k")
			if err != nil {
				t.Error(err)
			}
			got <- l
		}()
		eventually(t, "several tries", func() bool { return proxy.Requests() >= 3 })
		select {
		case <-got:
			t.Error("both have the lock")
		default:
		}
		mustUnlock(t, l)
		if l := <-got; l != nil {
			mustUnlock(t, l)
		}
	})
}

// Nobody extends the lease of a holder that was killed. So it blocks others for
// that long, and no longer.
func TestSpinAfterKilledHolder(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		spin := newProcess(t, server, patient)
		const lease = 300 * time.Millisecond
		begin := time.Now()
		server.Do(t, "SET", "k", "token of the dead", "PX", lease.Milliseconds())
		l := mustLock(t, spin, "k")
		if waited := time.Since(begin); waited < lease {
			t.Errorf("the lock was taken after %v, from a holder that might live", waited)
		}
		mustUnlock(t, l)
	})
}

// Unlock and Extend touch nothing but the lease's own token.
func TestSpinSparesOthers(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		l := mustLock(t, newProcess(t, server, patient), "k")
		server.Do(t, "SET", "k", "another", "PX", 50_000)
		if err := l.Extend(t.Context(), time.Hour); !errors.Is(err, ErrLost) {
			t.Errorf("Extend: %v", err)
		}
		if err := l.UnlockAfter(t.Context(), time.Hour); !errors.Is(err, ErrLost) {
			t.Errorf("UnlockAfter: %v", err)
		}
		l = mustLock(t, newProcess(t, server, patient), "k2")
		server.Do(t, "SET", "k2", "another")
		if err := l.Unlock(t.Context()); !errors.Is(err, ErrLost) {
			t.Errorf("Unlock: %v", err)
		}
		for _, key := range []string{"k", "k2"} {
			if holder, _ := server.Get(t, key); holder != "another" {
				t.Errorf("%s now holds %q", key, holder)
			}
		}
		if ttl, _ := redis.Int64(server.Do(t, "PTTL", "k"), nil); ttl > 50_000 {
			t.Errorf("another's lease was made to last %d ms", ttl)
		}
	})
}

func TestSpinKeyDeleted(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		l := mustLock(t, newProcess(t, server, patient), "k")
		server.Do(t, "DEL", "k")
		if err := l.Unlock(t.Context()); !errors.Is(err, ErrExpired) {
			t.Error(err)
		}
	})
}

// Whoever gives up waiting leaves nothing that takes the lock later.
func TestSpinWaitCancelled(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		l := mustLock(t, newProcess(t, server, patient), "k")
		spin, proxy := newProxied(t, server, patient)
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error)
		go func() {
			_, err := spin.Lock(ctx, "k")
			failed <- err
		}()
		eventually(t, "several tries", func() bool { return proxy.Requests() >= 3 })
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		mustUnlock(t, l)
		if keys := server.Keys(t); len(keys) != 0 {
			t.Errorf("left behind: %q", keys)
		}
		wantIdle(t, &spin.group)
	})
}

// Something else is where the lock should be. It is not for us to remove it.
func TestSpinKeyOfAnotherType(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		spin, proxy := newProxied(t, server, patient)
		server.Do(t, "LPUSH", "k", "value")
		_, err := spin.Lock(t.Context(), "k")
		if !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "for k: ") {
			t.Errorf("error %v, want one that names the key and the reason", err)
		}
		if n := proxy.Requests(); n != 1 {
			t.Errorf("%d commands, want only the one that was refused", n)
		}

		l := mustLock(t, spin, "k2")
		server.Do(t, "DEL", "k2")
		server.Do(t, "LPUSH", "k2", "value")
		if err := l.Unlock(t.Context()); err == nil {
			t.Error("Unlock found nothing wrong")
		}
		for _, key := range []string{"k", "k2"} {
			if got := server.Do(t, "LPUSH", key, "another"); got != int64(2) {
				t.Errorf("%s was changed: it has %v elements with another one", key, got)
			}
		}
	})
}

// An uncontended lock costs two round trips, and half of them at the start.
func TestSpinRoundTrips(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		spin, proxy := newProxied(t, server, patient)
		mustUnlock(t, mustLock(t, spin, "k"))
		commands := proxy.Commands()
		if len(commands) != 2 {
			t.Errorf("Lock and Unlock sent %q", commands)
		}
		for _, c := range commands {
			if c.Name != "EVALSHA" {
				t.Errorf("a script was sent, which Redis knows: %q", c)
			}
		}
	})
}
