package transport_test

import (
	"fmt"

	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/a2139e8d/latchkey/locker/transport/clienttest"
	"github.com/gomodule/redigo/redis"
)

// The client of a redigo pool keeps all promises of a Client.
func TestRedigo(t *testing.T) {
	t.Parallel()
	clienttest.Run(t, clienttest.Kind{Open: open, Start: start, OneWrite: true})
}

func open(t testing.TB, address string, timeout time.Duration) transport.Client {
	c := transport.NewRedigo(&redis.Pool{
		Dial: func() (redis.Conn, error) { return redis.Dial("tcp", address) },
	}, timeout)
	t.Cleanup(func() { c.Close() })
	return c
}

func start(t testing.TB) clienttest.Server {
	s := redistest.Real(t)
	return clienttest.Server{
		Address: s.Addr,
		Stop:    func() { s.Stop(t) },
		Restart: func() { s.Restart(t) },
		Pause:   func() { s.Pause(t) },
		Resume:  func() { s.Resume(t) },
	}
}

// Any number of callers share one connection, and take none from the pool. Each gets its own reply, even if
// commands and replies fill all buffers of the network.
func TestCrowd(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"small records": 0, "large records": 200_000} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Real(t)
			pool := server.Pool(t, 1)
			defer pool.Get().Close() // the pool has no other connection
			dialled, dial := 0, pool.Dial
			pool.Dial = func() (redis.Conn, error) { dialled++; return dial() }
			client := transport.NewRedigo(pool, time.Minute)
			defer client.Close()
			padding := strings.Repeat("x", size)
			var all sync.WaitGroup
			for i := range 64 {
				all.Go(func() {
					want := fmt.Sprint(i, padding)
					replies, err := client.Do(t.Context(), "", transport.Command{"PING", want})
					if err != nil {
						t.Error(err)
					} else if got := fmt.Sprintf("%s", replies[0]); got != want {
						t.Errorf("asked for %.20q, got %.20q", want, got)
					}
				})
			}
			all.Wait()
			if dialled != 1 {
				t.Errorf("%d connections", dialled)
			}
		})
	}
}
