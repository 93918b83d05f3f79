//go:build soak

package store

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// A plague is what goes wrong in Redis, and between the processes and Redis. Each of
// the two has its time, so that both go wrong together now and then.
type plague struct {
	t       *testing.T
	r       *redistest.Server
	proxies []*redistest.Proxy
	seed    uint64

	mu    sync.Mutex // guards the rest
	kinds counts     // faults so far
}

func newPlague(t *testing.T, r *redistest.Server, proxies []*redistest.Proxy, seed uint64) *plague {
	return &plague{t: t, r: r, proxies: proxies, seed: seed}
}

func (p *plague) count(kind string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kinds.add(kind)
}

func (p *plague) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kinds.String()
}

// forget keeps the proxies' records from growing.
func (p *plague) forget() {
	for _, proxy := range p.proxies {
		proxy.Forget()
	}
}

// The faults of Redis. Each is over when it returns.
var disasters = []struct {
	kind   string
	strike func(ctx context.Context, p *plague, random *rand.Rand)
}{
	{"kill", func(ctx context.Context, p *plague, random *rand.Rand) { p.kill(ctx, random) }},
	{"rewrite the log", func(_ context.Context, p *plague, _ *rand.Rand) {
		p.r.Do(p.t, "BGREWRITEAOF")
		eventually(p.t, "the log is rewritten", func() bool {
			info, _ := redis.String(p.r.Do(p.t, "INFO", "persistence"), nil)
			return strings.Contains(info, "aof_rewrite_in_progress:0")
		})
	}},
	{"kill in a rewrite", func(ctx context.Context, p *plague, random *rand.Rand) {
		p.r.Do(p.t, "BGREWRITEAOF")
		pause(ctx, upTo(random, 20*time.Millisecond))
		p.kill(ctx, random)
	}},
	{"stop", func(ctx context.Context, p *plague, random *rand.Rand) {
		p.r.Pause(p.t)
		pause(ctx, upTo(random, 1200*time.Millisecond))
		p.r.Resume(p.t)
	}},
	{"client pause", func(ctx context.Context, p *plague, random *rand.Rand) {
		d := upTo(random, 700*time.Millisecond)
		p.r.Do(p.t, "CLIENT", "PAUSE", d.Milliseconds()+1, []string{"ALL", "WRITE"}[random.IntN(2)])
		pause(ctx, d)
	}},
	{"full", func(ctx context.Context, p *plague, random *rand.Rand) {
		p.r.Do(p.t, "CONFIG", "SET", "maxmemory", "1")
		pause(ctx, upTo(random, 300*time.Millisecond))
		p.r.Do(p.t, "CONFIG", "SET", "maxmemory", "0")
	}},
	{"script flush", func(_ context.Context, p *plague, _ *rand.Rand) { p.r.Do(p.t, "SCRIPT", "FLUSH") }},
	{"kill clients", func(_ context.Context, p *plague, _ *rand.Rand) { p.r.Do(p.t, "CLIENT", "KILL", "TYPE", "normal") }},
	{"kill listeners", func(_ context.Context, p *plague, _ *rand.Rand) { p.r.Do(p.t, "CLIENT", "KILL", "TYPE", "pubsub") }},
	{"delete locks", func(_ context.Context, p *plague, _ *rand.Rand) { p.delete(".lock") }},
	{"delete queues", func(_ context.Context, p *plague, _ *rand.Rand) { p.delete(".queue") }},
}

// rage lets one fault of Redis follow the other until ctx ends, and then all is well
// again.
func (p *plague) rage(ctx context.Context) {
	random := rand.New(rand.NewPCG(p.seed, 0))
	for ctx.Err() == nil {
		pause(ctx, upTo(random, 2*time.Second))
		d := disasters[random.IntN(len(disasters))]
		p.count(d.kind)
		d.strike(ctx, p, random)
	}
}

// kill kills Redis, which then comes back with what it has answered.
func (p *plague) kill(ctx context.Context, random *rand.Rand) {
	p.r.Stop(p.t)
	pause(ctx, upTo(random, 300*time.Millisecond))
	p.r.Restart(p.t)
}

// delete deletes all keys of a kind.
func (p *plague) delete(kind string) {
	for _, key := range p.r.Keys(p.t) {
		if strings.HasSuffix(key, kind) {
			p.r.Do(p.t, "DEL", key)
		}
	}
}

func upTo(random *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(d)))
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
