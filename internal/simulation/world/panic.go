package world

import (
	"context"
	"math/rand/v2"

	"github.com/a2139e8d/latchkey/internal/simulation/plan"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// A client is a process's connection to Redis. It panics now and then.
type client struct {
	*transport.Redigo
	process *process
	rand    *rand.Rand // the world's mu guards it
}

func newClient(p *process, r *transport.Redigo) *client {
	return &client{r, p, rand.New(rand.NewPCG(p.world.plan.Seed, uint64(p.number)<<48|uint64(p.life)<<32))}
}

// Do implements transport.Client.
func (c *client) Do(ctx context.Context, key string, commands ...transport.Command) (replies []any, err error) {
	defer c.process.exchanges(ctx, commands)()
	before, after := c.panics()
	c.panicIf(before)
	replies, err = c.Redigo.Do(ctx, key, commands...)
	c.panicIf(after)
	return replies, err
}

// DoRouted implements transport.RoutedClient.
func (c *client) DoRouted(ctx context.Context, key string, commands ...transport.Command) ([]any, transport.Route, error) {
	replies, err := c.Do(ctx, key, commands...)
	return replies, transport.Route{}, err
}

// Subscribe implements transport.Client.
func (c *client) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	before, after := c.panics()
	c.panicIf(before || after)
	return c.Redigo.Subscribe(ctx, channel)
}

// panics decides whether a call panics, and when.
func (c *client) panics() (before, after bool) {
	w := c.process.world
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.plan.Faults {
		if f.Kind == plan.Panics && f.Hits(c.process.number, w.now()) && c.rand.Float64() < f.Share {
			before = c.rand.IntN(2) == 0
			return before, !before
		}
	}
	return false, false
}

func (c *client) panicIf(now bool) {
	if !now {
		return
	}
	w := c.process.world
	w.mu.Lock()
	w.trace.add(event{at: w.now(), what: "*** its Redis client panics", process: c.process.number})
	w.mu.Unlock()
	panic("the Redis client panics")
}
