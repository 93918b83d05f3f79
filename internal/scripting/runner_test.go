package scripting

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/testdata/redistest"
	"github.com/gomodule/redigo/redis"
)

// echo has a number of callers ask Redis for many different things at once, and
// checks that each gets its own. failed is called with every error.
func echo(t *testing.T, client *Runner, callers, times int, padding string, failed func(error)) {
	t.Helper()
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for n := range times {
				want := fmt.Sprint(i, " ", n, padding)
				got, err := echoed(client.Run(t.Context(), echoScript, []string{"k"}, want))
				if err != nil {
					failed(err)
				} else if got != want {
					t.Errorf("asked for %.20q, got %.20q", want, got)
				}
			}
		})
	}
	all.Wait()
}

// Any number of callers share few connections.
func TestEvalOfACrowd(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		for _, wait := range []bool{true, false} {
			for _, size := range []int{64, 1} {
				pool := server.Pool(t, size)
				pool.Wait = wait
				echo(t, OverPool(pool, time.Minute), 64, 20, "", func(err error) { t.Error(err) })
				if stats := pool.Stats(); stats.ActiveCount > min(size, maxLanes) || stats.IdleCount != stats.ActiveCount {
					t.Errorf("a pool of %d has %+v", size, stats)
				}
			}
		}
	})
}

// Commands and replies of some size fill all that the network keeps. The embedded
// server stops reading then, until its replies are read.
func TestEvalOfLargeRecords(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		client := OverPool(server.Pool(t, 1), time.Minute)
		echo(t, client, 64, 1, strings.Repeat("x", 200_000), func(err error) { t.Error(err) })
	})
}

// Connections break all the time, at any point. Nobody gets another's reply.
func TestEvalNeverMixesReplies(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		proxy := redistest.NewProxy(t, server)
		faults := []redistest.Fault{redistest.DropReply, redistest.CutReply, redistest.DropCommand}
		proxy.Inject(func(redistest.Command) redistest.Fault {
			if n := rand.IntN(60); n < len(faults) {
				return faults[n]
			}
			return redistest.Pass
		})
		client := OverPool(proxy.Pool(t, 8), time.Minute)
		echo(t, client, 64, 20, "", func(err error) {
			if !Ambiguous(err) {
				t.Error(err)
			}
		})
	})
}

// After a restart all connections in the pool are dead, and of a whole crowd that
// comes then, nobody notices.
func TestEvalOfACrowdAfterRestart(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		for _, wait := range []bool{true, false} {
			pool := server.Pool(t, 16)
			pool.Wait = wait
			client := OverPool(pool, time.Minute)
			for range 3 {
				fill(t, pool, 16)
				server.Restart(t)
				echo(t, client, 64, 2, "", func(err error) { t.Error(err) })
			}
		}
	})
}

// The same for one that came before, when all connections were in use.
func TestEvalBeforeRestart(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t, 3)
		crowd := p.crowd("a", "b", "c", "waits")
		w := map[string]*wire{}
		for _, name := range []string{"a", "b", "c"} {
			w[name] = p.accept()
			w[name].wantCommands(name)
		}
		w["a"].answer("a")
		w["a"].wantCommands("waits")
		for _, name := range []string{"b", "c"} {
			w[name].answer(name)
		}
		for _, a := range crowd[:3] {
			a.wantReply()
		}
		for _, wire := range w {
			wire.Close()
		}
		p.accept().serve("waits")
		crowd[3].wantReply()
	})
}

// A server that closes every connection is no reason to try for ever.
func TestEvalTriesAreCounted(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t, 0)
		tries := 0
		p.pool.Dial = func() (redis.Conn, error) {
			tries++
			conn, err := p.dial()
			p.accept().Close()
			return conn, err
		}
		p.ask(t.Context(), "a").wantError(ErrUnavailable, true)
		if tries != 2 {
			t.Errorf("%d connections, want one, and one more", tries)
		}
	})
}

// Without time nothing is sent, and so nothing has happened.
func TestEvalWithoutTime(t *testing.T) {
	for name, wait := range map[string]bool{"a pool that waits": true, "a pool that fails": false} {
		t.Run(name, func(t *testing.T) {
			onServers(t, func(t *testing.T, server *redistest.Server) {
				proxy := redistest.NewProxy(t, server)
				pool := proxy.Pool(t, 1)
				pool.Wait = wait
				fill(t, pool, 1)
				proxy.Forget()
				ctx, cancel := context.WithTimeout(t.Context(), 0)
				defer cancel()
				_, err := OverPool(pool, time.Minute).Run(ctx, echoScript, []string{"k"}, "a")
				if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrUnavailable) || Ambiguous(err) {
					t.Errorf("%v, may have happened: %v", err, Ambiguous(err))
				}
				if n := proxy.Requests(); n != 0 {
					t.Errorf("%d commands", n)
				}
			})
		})
	}
}

// BenchmarkEval is one exchange, with so many callers that make one after another.
func BenchmarkEval(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			pool := redistest.Real(b).Pool(b, 64)
			pool.Wait = false // like that of a store
			client := OverPool(pool, time.Minute)
			script := NewScript(`redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]); return 1`)
			procs := runtime.GOMAXPROCS(min(callers, runtime.GOMAXPROCS(0)))
			defer runtime.GOMAXPROCS(procs)
			b.SetParallelism(max(1, callers/runtime.GOMAXPROCS(0)))
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := client.Run(b.Context(), script, []string{"k"}, "token", 10_000); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
