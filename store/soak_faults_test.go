//go:build soak

package store

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/testdata/redistest"
)

// A plague is what goes wrong between the processes and Redis, and in it.
type plague struct {
	t       *testing.T
	r       *redistest.Server
	proxies []*redistest.Proxy
	random  *rand.Rand // of the one goroutine of rage

	fault atomic.Int64 // what the proxies do now and then
	odds  atomic.Int64 // once in so many commands; 0: never
	count atomic.Int64 // faults so far
}

func newPlague(t *testing.T, r *redistest.Server, proxies []*redistest.Proxy, seed uint64) *plague {
	p := &plague{t: t, r: r, proxies: proxies, random: rand.New(rand.NewPCG(seed, 0))}
	for _, proxy := range proxies {
		proxy.Inject(func(redistest.Command) redistest.Fault {
			if odds := p.odds.Load(); odds > 0 && rand.Int64N(odds) == 0 {
				p.count.Add(1)
				return redistest.Fault(p.fault.Load())
			}
			return redistest.Pass
		})
	}
	return p
}

// rage goes on until ctx ends, and then all is well again.
func (p *plague) rage(ctx context.Context) {
	for ctx.Err() == nil {
		pause(ctx, time.Duration(p.random.IntN(300))*time.Millisecond)
		p.strike(ctx)
		p.calm()
	}
}

func (p *plague) strike(ctx context.Context) {
	network := func(fault redistest.Fault, odds int64, d time.Duration) {
		p.fault.Store(int64(fault))
		p.odds.Store(odds)
		pause(ctx, d)
	}
	switch p.random.IntN(12) {
	case 0, 1:
		network(redistest.DropReply, 20, 200*time.Millisecond)
	case 2, 3:
		network(redistest.DropCommand, 20, 200*time.Millisecond)
	case 4:
		network(redistest.CutReply, 20, 200*time.Millisecond)
	case 5:
		network(redistest.DropCommand, 1, 300*time.Millisecond) // nothing gets through
	case 6:
		network(redistest.Hang, 50, 100*time.Millisecond)
	case 7:
		network(redistest.HangCommand, 50, time.Duration(p.random.IntN(1500))*time.Millisecond)
	case 8:
		p.delete(".lock")
	case 9:
		p.delete(".queue")
	case 10:
		p.count.Add(1)
		p.r.Do(p.t, "CLIENT", "KILL", "TYPE", "normal")
	case 11:
		p.count.Add(1)
		p.r.Pause(p.t)
		pause(ctx, time.Duration(p.random.IntN(1200))*time.Millisecond)
		p.r.Resume(p.t)
	}
}

// calm ends a fault. Commands that were held back arrive now.
func (p *plague) calm() {
	p.odds.Store(0)
	for _, proxy := range p.proxies {
		proxy.Release()
		proxy.Forget()
	}
}

// delete deletes all keys of a kind.
func (p *plague) delete(kind string) {
	for _, key := range p.r.Keys(p.t) {
		if strings.HasSuffix(key, kind) {
			p.count.Add(1)
			p.r.Do(p.t, "DEL", key)
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
