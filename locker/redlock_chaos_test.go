package locker

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// chaotic are options with which a test of failing nodes takes a few seconds, on a
// machine that may be busy with something else.
var chaotic = Options{Lease: 2 * s, MaxHold: time.Minute, Wait: 3 * s, Timeout: s / 4}

// real starts a Redis process.
func real(tb testing.TB) *redistest.Server { return redistest.Real(tb) }

// harm kills or freezes two nodes, again and again, until ctx ends. A killed node
// has forgotten everything, so it stays away for a lease, as it must.
func harm(ctx context.Context, t *testing.T, random *rand.Rand, victims []*redistest.Server) {
	var all sync.WaitGroup
	for _, victim := range victims {
		seed := random.Uint64()
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, 0))
			within := func(least, most time.Duration) time.Duration {
				return least + time.Duration(random.Int64N(int64(most-least)))
			}
			for ctx.Err() == nil {
				pause(ctx, within(0, s/2))
				if random.IntN(3) == 0 {
					victim.Stop(t)
					time.Sleep(chaotic.Lease + s/10)
					victim.Restart(t)
				} else {
					victim.Pause(t)
					pause(ctx, within(s/100, s))
					victim.Resume(t)
				}
			}
		})
	}
	all.Wait()
}

// Any two of five nodes may be killed or frozen, at any moment, while callers of
// several processes count with a variable that only the lock guards. There are
// never two holders, and nobody waits longer than was said.
func TestRedlockSurvivesTwoOfFive(t *testing.T) {
	t.Parallel()
	const processes, callers = 3, 3
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	servers, _ := nodesOf(t, 5, real)
	random.Shuffle(len(servers), func(i, j int) { servers[i], servers[j] = servers[j], servers[i] })

	ctx, stop := context.WithTimeout(t.Context(), 3*s)
	defer stop()
	var counted int            // guarded by the lock, and by nothing else
	var holder, n atomic.Int64 // who is in; how many have been
	var all sync.WaitGroup
	for process := range processes {
		lock := NewRedlock(poolsOf(t, servers), chaotic)
		for caller := range callers {
			me := int64(1 + process*callers + caller)
			all.Go(func() {
				for ctx.Err() == nil {
					begin := time.Now()
					l, err := lock.Lock(t.Context(), "k")
					// One exchange may be under way at the end, with its release.
					if took := time.Since(begin); took > chaotic.Wait+3*chaotic.Timeout+s {
						t.Errorf("Lock took %v: %v", took, err)
					}
					if err != nil {
						if !errors.Is(err, ErrTimeout) {
							t.Errorf("two nodes are too many: %v", err)
						}
						continue
					}
					if !holder.CompareAndSwap(0, me) {
						t.Errorf("%d and %d have the lock", holder.Load(), me)
					}
					read := counted
					runtime.Gosched()
					time.Sleep(s / 500)
					counted = read + 1
					n.Add(1)
					holder.CompareAndSwap(me, 0)
					if err := l.Unlock(t.Context()); errors.Is(err, ErrLost) {
						t.Errorf("another took the lock from its holder: %v", err)
					}
				}
			})
		}
	}
	harm(ctx, t, random, servers[:2])
	all.Wait()
	if int64(counted) != n.Load() || counted < 10 {
		t.Errorf("counted %d of %d", counted, n.Load())
	}
	t.Logf("%d locks", counted)
	for _, server := range servers { // nothing outlasts its lease
		eventually(t, "all keys gone", func() bool { return len(server.Keys(t)) == 0 })
	}
}

// pause sleeps for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
