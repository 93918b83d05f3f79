package records

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/gomodule/redigo/redis"
)

// A far client is far from Redis: each round trip takes a while. A command arrives even if its sender has given
// up.
type far struct {
	transport.Client
	oneWay time.Duration
}

func (c far) Do(ctx context.Context, key string, commands ...transport.Command) ([]any, error) {
	lapse(c.oneWay)
	sent := context.WithoutCancel(ctx)
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		sent, cancel = context.WithDeadline(sent, end)
		defer cancel()
	}
	replies, err := c.Client.Do(sent, key, commands...)
	if err == nil {
		lapse(c.oneWay)
	}
	return replies, err
}

// openFar opens a store on a far client.
func openFar(t *testing.T, pool *redis.Pool, oneWay time.Duration, o Options) *Engine {
	st := New(far{transport.NewRedigo(pool, o.Timeout), oneWay}, o)
	t.Cleanup(func() {
		_ = st.Close()
		lapse(time.Minute) // what was under way has ended by then
	})
	return st
}

// P6: processes that compete for one session take turns, however many requests each has, and however soon these
// give up or their clients leave. The place in the queue belongs to the process: a request that gives up leaves
// it to the next in line.
func TestABusyProcessGetsItsTurns(t *testing.T) {
	t.Parallel()
	for name, busy := range map[string]struct {
		requests    int
		wait, leave time.Duration // the LockWait of a request; when its client leaves
	}{
		"2 requests like the others": {2, time.Minute, time.Minute},
		"40 requests that give up":   {40, 200 * time.Millisecond, time.Minute},
		"100 clients that leave":     {100, time.Minute, 60 * time.Millisecond},
	} {
		for _, oneWay := range []time.Duration{0, 3 * time.Millisecond} {
			t.Run(name+", Redis is "+oneWay.String()+" away", fakeTime(func(t *testing.T, s *redistest.Server) {
				create(t, process(t, s), "0")
				served := make([]int, 4)
				end := time.Now().Add(2500 * time.Millisecond)
				var all sync.WaitGroup
				for i := range served {
					st := openFar(t, s.Pool(t, 8), oneWay, patient)
					load := busy
					if i > 0 {
						load.requests, load.wait, load.leave = 2, time.Minute, time.Minute
					}
					for n := range load.requests {
						all.Go(func() {
							lapse(time.Duration(n) * 200 * time.Millisecond / time.Duration(load.requests))
							for time.Now().Before(end) {
								ctx, leave := context.WithCancel(t.Context())
								left := time.AfterFunc(load.leave, leave)
								h, _, err := st.Take(ctx, theID, Terms{LockWait: load.wait})
								if err == nil {
									if time.Now().Before(end) {
										served[i]++ // nobody else has the session
									}
									lapse(10 * time.Millisecond)
									must(t, h.Touch(t.Context()))
								}
								left.Stop()
								leave()
							}
						})
					}
				}
				all.Wait()
				t.Logf("served %d, the busy process first", served)
				if least, most := slices.Min(served), slices.Max(served); least < 25 || most > least+2 {
					t.Errorf("one process was served %d times and another %d: %d", most, least, served)
				}
			}))
		}
	}
}

// P5: if a client leaves during the take, its request ends with that round trip. It waits for no other, even if
// another request of its process waits for the lock that it has acquired.
func TestAClientThatLeavesIsKeptByOneExchange(t *testing.T) {
	const oneWay = 50 * time.Millisecond
	o := patient
	o.Lease = 5 * oneWay // after a round trip, so little is left of it that the next hold needs a renewal
	fakeTime(func(t *testing.T, s *redistest.Server) {
		create(t, process(t, s), "0")
		st := openFar(t, s.Pool(t, 8), oneWay, o)
		_, err := st.Load(t.Context(), theID, Terms{}) // dials
		must(t, err)
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(oneWay/2, leave)
		var behind sync.WaitGroup
		behind.Go(func() {
			lapse(oneWay / 4)
			h, _, err := st.Take(t.Context(), theID, Terms{LockWait: time.Minute})
			must(t, err)
			must(t, h.Touch(t.Context()))
		})
		begun := time.Now()
		_, _, err = st.Take(ctx, theID, Terms{LockWait: time.Minute})
		if took := time.Since(begun); !errors.Is(err, context.Canceled) || took > 2*oneWay {
			t.Errorf("after %v: %v", took, err)
		}
		behind.Wait()
	})(t)
}
