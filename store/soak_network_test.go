//go:build soak

package store

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// A bad network is what the proxies do with one in so many commands.
type network struct {
	kind  string
	fault redistest.Fault
	odds  int
	delay time.Duration // up to this; the commands of a process wait for each other
	lasts time.Duration // up to this
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

// cut lets one bad network follow the other, for one process or for all behind a
// proxy, until ctx ends.
func (p *plague) cut(ctx context.Context) {
	random := rand.New(rand.NewPCG(p.seed, 1))
	for ctx.Err() == nil {
		pause(ctx, upTo(random, time.Second))
		n := networks[random.IntN(len(networks))]
		hit := p.proxies
		if i := random.IntN(2 * len(hit)); i < len(hit) {
			hit = hit[i : i+1]
		}
		for _, proxy := range hit {
			proxy.Inject(func(redistest.Command) redistest.Fault { return p.decide(n) })
		}
		pause(ctx, upTo(random, n.lasts))
		for _, proxy := range hit {
			proxy.Inject(nil)
			proxy.Release() // what was held back arrives now
		}
	}
}

func (p *plague) decide(n network) redistest.Fault {
	if rand.IntN(n.odds) > 0 {
		return redistest.Pass
	}
	p.count(n.kind)
	if n.delay > 0 {
		time.Sleep(rand.N(n.delay))
	}
	return n.fault
}
