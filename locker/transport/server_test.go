package transport_test

import (
	"context"
	"errors"
	"fmt"

	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/memnet"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/gomodule/redigo/redis"
)

// Any number of callers share one connection, and take none of the pool. Each gets its own reply, or an
// error: also where commands and replies fill all that the network keeps, connections break at any
// point, and some callers have little time.
func TestCrowd(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		times, size int
		bad         bool
	}{
		"small records":   {10, 0, false},
		"large records":   {1, 200_000, false},
		"bad connections": {20, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, server *redistest.Server) {
				proxy := redistest.NewProxy(t, server)
				if tt.bad {
					faults := []redistest.Fault{redistest.DropReply, redistest.CutReply, redistest.DropCommand}
					proxy.Inject(func(redistest.Command) redistest.Fault {
						return append(faults, slices.Repeat([]redistest.Fault{redistest.Pass}, 97)...)[rand.IntN(100)]
					})
				}
				pool := proxy.Pool(t, 1)
				defer pool.Get().Close() // there is none to be had
				dialled, dial := 0, pool.Dial
				pool.Dial = func() (redis.Conn, error) { dialled++; return dial() }
				client := transport.NewRedigo(pool, time.Minute)
				defer client.Close()
				padding := strings.Repeat("x", tt.size)
				var all sync.WaitGroup
				for i := range 64 {
					all.Go(func() {
						for n := range tt.times {
							ctx, cancel := t.Context(), context.CancelFunc(func() {})
							if tt.bad && n%3 == 0 {
								ctx, cancel = context.WithTimeout(ctx, time.Duration(rand.IntN(int(3*time.Millisecond))))
							}
							want := fmt.Sprint(i, " ", n, padding)
							replies, err := client.Do(ctx, "", transport.Command{"PING", want})
							cancel()
							if err != nil {
								if !tt.bad || !errors.Is(err, transport.ErrUnavailable) {
									t.Error(err)
								}
							} else if got := fmt.Sprintf("%s", replies[0]); got != want {
								t.Errorf("asked for %.20q, got %.20q", want, got)
							}
						}
					})
				}
				all.Wait()
				if dialled != 1 && !tt.bad {
					t.Errorf("%d connections", dialled)
				}
			})
		})
	}
}

// Also where to connect takes exchanges of its own, a silent server keeps nobody for longer than the
// timeout and a little: less than two of them.
func TestSilentServerWithPassword(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, server *redistest.Server) {
		const timeout = 2 * time.Second
		client := transport.NewRedigo(&redis.Pool{DialContext: func(ctx context.Context) (redis.Conn, error) {
			return redis.DialContext(ctx, "tcp", server.Addr, redis.DialContextFunc(memnet.DialContext), redis.DialPassword("pass"))
		}}, timeout)
		defer client.Close()
		ping := transport.Command{"PING"}
		if _, err := client.Do(t.Context(), "", ping); err != nil {
			t.Fatal(err)
		}
		server.Pause(t)
		for range 2 { // the first time there is a connection
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					begun := time.Now()
					_, err := client.Do(t.Context(), "", ping)
					if !errors.Is(err, transport.ErrUnavailable) || time.Since(begun) > timeout*7/4 {
						t.Errorf("%v, after %v", err, time.Since(begun))
					}
				})
				redistest.Elapse(timeout / 32)
			}
			all.Wait()
		}
		server.Resume(t)
	})
}
