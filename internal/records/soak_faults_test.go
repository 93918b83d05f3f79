//go:build soak

package records

import (
	"context"
	"expvar"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// A plague makes things go wrong in Redis, and between the processes and Redis, independently: so both go wrong
// at once now and then.
type plague struct {
	t       *testing.T
	r       *redistest.Server
	proxies []*redistest.Proxy
	kinds   expvar.Map // faults so far
}

// disasters are faults of Redis. Each fault has ended when its function returns.
var disasters = []struct {
	kind   string
	strike func(ctx context.Context, p *plague, random *rand.Rand)
}{
	{"kill", func(ctx context.Context, p *plague, random *rand.Rand) { p.kill(ctx, random) }},
	{"rewrite the log", func(_ context.Context, p *plague, _ *rand.Rand) {
		p.r.Do(p.t, "BGREWRITEAOF")
		redistest.Eventually(p.t, "the log is rewritten", func() bool {
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

// rage causes one fault of Redis after another until ctx ends. Then Redis works again.
func (p *plague) rage(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil {
		pause(ctx, upTo(random, 2*time.Second))
		d := disasters[random.IntN(len(disasters))]
		p.kinds.Add(d.kind, 1)
		d.strike(ctx, p, random)
	}
}

// A network is a fault that the proxies inject into one of so many commands.
type network struct {
	kind  string
	fault redistest.Fault
	odds  int
	delay time.Duration // at most; commands of a process wait for each other
	lasts time.Duration // at most
}

var networks = []network{
	{kind: "reply dropped", fault: redistest.DropReply, odds: 20, lasts: 300 * time.Millisecond},
	{kind: "command dropped", fault: redistest.DropCommand, odds: 20, lasts: 300 * time.Millisecond},
	{kind: "reply cut", fault: redistest.CutReply, odds: 20, lasts: 300 * time.Millisecond},
	{kind: "cut off", fault: redistest.DropCommand, odds: 1, lasts: 500 * time.Millisecond},
	{kind: "reply held for ever", fault: redistest.Hang, odds: 50, lasts: 100 * time.Millisecond},
	{kind: "command held", fault: redistest.HangCommand, odds: 50, lasts: 1500 * time.Millisecond},
	{kind: "delayed", fault: redistest.Pass, odds: 2, delay: 5 * time.Millisecond, lasts: 500 * time.Millisecond},
}

// cut causes one network fault after another until ctx ends: for one process, or for all behind a proxy.
func (p *plague) cut(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil {
		pause(ctx, upTo(random, time.Second))
		n := networks[random.IntN(len(networks))]
		hit := p.proxies
		if i := random.IntN(2 * len(hit)); i < len(hit) {
			hit = hit[i : i+1]
		}
		for _, proxy := range hit {
			proxy.Inject(func(redistest.Command) redistest.Fault {
				if rand.IntN(n.odds) > 0 {
					return redistest.Pass
				}
				p.kinds.Add(n.kind, 1)
				if n.delay > 0 {
					lapse(rand.N(n.delay))
				}
				return n.fault
			})
		}
		pause(ctx, upTo(random, n.lasts))
		for _, proxy := range hit {
			proxy.Inject(nil)
			proxy.Release() // what was held back arrives now
		}
	}
}

// kill kills Redis, which then comes back with all that it has acknowledged.
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
