package lease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// hurry makes a number of callers take and release locks on some keys, and reports
// every failure.
func hurry(t *testing.T, pool *redis.Pool, callers, keys int) {
	t.Helper()
	spin := newSpin(pool, patient)
	n := make([]int, keys) // each guarded by its lock
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			l, err := spin.Lock(t.Context(), fmt.Sprint("k", i%keys))
			if err != nil {
				t.Error(err)
				return
			}
			n[i%keys]++
			mustUnlock(t, l)
		})
	}
	all.Wait()
	wantIdle(t, &spin.group)
}

// However small the pool, a holder can always release, and so all get their turn.
func TestPoolIsSmall(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		hurry(t, server.Pool(t, 1), 50, 1)
		hurry(t, server.Pool(t, 1), 50, 50)
	})
}

// Whether they wait for a caller of their own process or for another process: the callers
// that wait send nothing, and keep nothing from others.
func TestWaitingSendsNothing(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		teach(t, server)
		server.Do(t, "SET", "k", "another")
		proxy := redistest.NewProxy(t, server)
		pool := proxy.Pool(t, 8)
		o := patient
		o.Backoff = Backoff{Min: time.Minute, Max: time.Minute} // no try before it is known whether a message will come
		spin := newSpin(pool, o)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { spin.Lock(ctx, "k") })
		}
		eventually(t, "one tries, and 19 wait for it", func() bool {
			spin.group.mu.Lock()
			defer spin.group.mu.Unlock()
			q := spin.group.keys["k"]
			return q != nil && len(q.waiting) == 19 && proxy.Requests() >= 3
		})
		mustUnlock(t, mustLock(t, newSpin(pool, patient), "another key"))
		if n := proxy.Requests(); n != 5 {
			t.Errorf("%d commands, want one for the try, one to subscribe, one for the queue, and two for another key", n)
		}
		cancel()
		all.Wait()
	})
}

// All connections of the pool are in use by others, and stay so: a lock needs none of them.
func TestPoolIsExhausted(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		pool := server.Pool(t, 1)
		defer pool.Get().Close()
		mustUnlock(t, mustLock(t, newSpin(pool, patient), "k"))
	})
}

func TestPoolIsNil(t *testing.T) {
	t.Parallel()
	_, err := newSpin(nil, Options{}).Lock(t.Context(), "k")
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "the pool is nil") {
		t.Error(err)
	}
}
