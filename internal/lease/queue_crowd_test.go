package lease

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/gomodule/redigo/redis"
)

// wantSilence says that a process has no place in a queue any more, and soon no
// subscription.
func wantSilence(t *testing.T, spin *peer) {
	t.Helper()
	b := spin.group.Notifiers.shared
	eventually(t, "the end of the subscription", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.places) == 0 && b.subscription == nil && b.starting.IsZero()
	})
}

// A crowd in several processes counts with a variable that only the lock guards, and
// all get their turn, whatever happens to the messages between them.
func TestQueuedCrowd(t *testing.T) {
	for name, disturb := range map[string]func(t *testing.T, server *redistest.Server){
		"undisturbed":        nil,
		"scripts vanish":     func(t *testing.T, server *redistest.Server) { server.Do(t, "SCRIPT", "FLUSH") },
		"connections break":  func(t *testing.T, server *redistest.Server) { server.Do(t, "CLIENT", "KILL", "TYPE", "pubsub") },
		"the queue vanishes": func(t *testing.T, server *redistest.Server) { server.Do(t, "DEL", queueKey("k")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Real(t)
			ctx, cancel := context.WithCancel(t.Context())
			var disturbing sync.WaitGroup
			if disturb != nil {
				disturbing.Go(func() {
					for ctx.Err() == nil {
						disturb(t, server)
						select {
						case <-time.After(20 * time.Millisecond):
						case <-ctx.Done():
						}
					}
				})
			}
			const processes, callers, times = 3, 4, 25
			n := 0
			var all sync.WaitGroup
			var spins []*peer
			for range processes {
				spin := newProcess(t, server, patient)
				spins = append(spins, spin)
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
			cancel()
			disturbing.Wait()
			if n != processes*callers*times {
				t.Errorf("counted %d of %d", n, processes*callers*times)
			}
			for _, spin := range spins {
				wantSilence(t, spin)
				wantIdle(t, &spin.group)
			}
			if keys := server.Keys(t); len(keys) != 0 {
				t.Errorf("left behind: %q", keys)
			}
			eventually(t, "nobody listens", func() bool {
				list, err := redis.String(server.Do(t, "CLIENT", "LIST", "TYPE", "pubsub"), nil)
				return err == nil && list == ""
			})
		})
	}
}

// While all wait, no process is served more often than another, and all are told by one
// subscription each.
func TestQueuedIsFair(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	const processes, callers, times = 4, 3, 3000
	pubsub := make([]countedSubscriber, processes)
	served := make([]int, processes) // guarded by the lock
	total := 0                       // too
	first := mustLock(t, newProcess(t, server, patient), "k")
	var all sync.WaitGroup
	for i := range processes {
		client := transport.NewRedigo(server.Pool(t, 8), 10*s)
		pubsub[i].Subscriber = client
		spin := &peer{group: Group{Notifiers: NewNotifiers(&pubsub[i])}, algorithm: Spin{Runner: scripting.NewRunner(client, 10*s)}, options: patient}
		for range callers {
			all.Go(func() {
				for {
					l, err := spin.Lock(t.Context(), "k")
					if err != nil {
						t.Error(err)
						return
					}
					more := total < times
					if more {
						served[i]++
						total++
					}
					mustUnlock(t, l)
					if !more {
						return
					}
				}
			})
		}
	}
	eventually(t, "all wait", func() bool {
		places, _ := server.Get(t, queueKey("k"))
		n := 0
		for _, c := range places {
			if c == ' ' {
				n++
			}
		}
		return n == processes
	})
	mustUnlock(t, first)
	all.Wait()
	if least, most := slices.Min(served), slices.Max(served); float64(most) > 1.3*float64(least) {
		t.Errorf("served %v", served)
	}
	for i := range pubsub {
		if n := pubsub[i].asked(); n > 2 {
			t.Errorf("a process subscribed %d times", n)
		}
	}
}

// countedSubscriber counts its subscriptions.
type countedSubscriber struct {
	Subscriber
	mu sync.Mutex
	n  int
}

func (c *countedSubscriber) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	c.mu.Lock()
	c.n++
	c.mu.Unlock()
	return c.Subscriber.Subscribe(ctx, channel)
}

func (c *countedSubscriber) asked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}
