package lease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/testdata/redistest"
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
		impatient := server.Pool(t, 2)
		impatient.Wait = false // fails where all are in use, instead of waiting
		hurry(t, impatient, 50, 1)
		hurry(t, impatient, 50, 25)
	})
}

// Whether they wait for a caller of their own process or for another process:
// waiters leave the pool to others.
func TestPoolIsLeftToOthersWhileWaiting(t *testing.T) {
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
		eventually(t, "the end of the try", func() bool { return inUse(pool) == 0 })
		mustUnlock(t, mustLock(t, newSpin(pool, patient), "another key"))
		if n := proxy.Requests(); n != 5 {
			t.Errorf("%d commands, want one for the try, one to subscribe, one for the queue, and two for another key", n)
		}
		if n := inUse(pool); n != 0 {
			t.Errorf("%d connections in use", n)
		}
		cancel()
		all.Wait()
	})
}

// All connections are in use, and stay so: whoever gives up is let go, and nothing
// has happened.
func TestPoolIsExhausted(t *testing.T) {
	for name, wait := range map[string]bool{"a pool that waits": true, "a pool that fails": false} {
		t.Run(name, func(t *testing.T) {
			onServers(t, func(t *testing.T, server *redistest.Server) {
				proxy := redistest.NewProxy(t, server)
				pool := proxy.Pool(t, 1)
				pool.Wait = wait
				defer pool.Get().Close()

				ctx, cancel := context.WithCancelCause(t.Context())
				gone := errors.New("the client has gone")
				time.AfterFunc(20*time.Millisecond, func() { cancel(gone) })
				if _, err := newSpin(pool, patient).Lock(ctx, "k"); !errors.Is(err, gone) {
					t.Errorf("after cancellation: %v", err)
				}
				if _, err := newSpin(pool, hasty).Lock(t.Context(), "k"); !errors.Is(err, ErrUnavailable) {
					t.Errorf("after Timeout: %v", err)
				}
				if n := proxy.Requests(); n != 0 {
					t.Errorf("%d commands were sent", n)
				}
			})
		})
	}
}

func TestPoolIsNil(t *testing.T) {
	t.Parallel()
	_, err := newSpin(nil, Options{}).Lock(t.Context(), "k")
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "the pool is nil") {
		t.Error(err)
	}
}

// A pool that is closed while somebody waits for a connection, as at the end of a
// program, is an error. By itself redigo would panic here.
func TestPoolIsClosed(t *testing.T) {
	t.Parallel()
	for range 100 {
		pool := &redis.Pool{MaxActive: 1, Wait: true, Dial: func() (redis.Conn, error) { return nil, errors.New("no") }}
		pool.Close()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := scripting.OverPool(pool, s).Run(ctx, takeScript, []string{"k"}, "t", 1000)
		if !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
	}
}
