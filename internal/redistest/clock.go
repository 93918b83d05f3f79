package redistest

import (
	"context"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// tickEvery is how often the clock ticks while no command comes. Redis too
// counts expiry in milliseconds.
const tickEvery = time.Millisecond

// A clock makes the keys of a Miniredis expire. By itself, a Miniredis does not let
// time pass.
//
// Miniredis can follow the system's clock (ClockTTL), but then a key may expire
// between two calls of one Lua script. In Redis time stands still during a
// script. FastForward waits for a running script to end, so it keeps that.
type clock struct {
	mini   *miniredis.Miniredis
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu   sync.Mutex
	last time.Time // when the keys were last aged
}

func startClock(m *miniredis.Miniredis) *clock {
	ctx, cancel := context.WithCancel(context.Background())
	c := &clock{mini: m, cancel: cancel, last: time.Now()}
	m.Server().SetPreHook(c.beforeCommand)
	c.done.Go(func() { c.run(ctx) })
	return c
}

func (c *clock) run(ctx context.Context) {
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			c.tick()
		}
	}
}

// beforeCommand brings the clock up to date before a command runs. Without it, a
// tick that comes late on a busy machine would also age the keys written just
// before it, and they would expire too early. A lock must never do that.
//
// Commands that a script calls come here too, with the Miniredis locked. They
// are left alone: their tick would wait for that lock forever.
func (c *clock) beforeCommand(*server.Peer, string, ...string) (handled bool) {
	if c.mini.TryLock() {
		c.mini.Unlock()
		c.tick()
	}
	return false
}

// tick ages all keys by the time that has passed since the last tick.
func (c *clock) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	passed := time.Since(c.last)
	c.last = c.last.Add(passed)
	c.mini.FastForward(passed)
}

// stop returns when the clock's goroutine has ended.
func (c *clock) stop() {
	c.cancel()
	c.done.Wait()
}
