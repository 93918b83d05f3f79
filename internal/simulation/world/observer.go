package world

import (
	"context"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/a2139e8d/latchkey/internal/simulation/history"
	"github.com/a2139e8d/latchkey/internal/simulation/plan"
	"github.com/a2139e8d/latchkey/internal/simulation/told"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/a2139e8d/latchkey/middleware"
)

// Each process has two observers: one with the plan's manner, and behind it one that notes what it is told.
// Neither draws from the plan's generator.

// observers are Options.Observers.
func (p *process) observers() []middleware.Observer {
	seed := rand.NewPCG(p.world.plan.Seed, uint64(p.number)<<48|uint64(p.life)<<32|1<<31)
	return []middleware.Observer{&badObserver{p, rand.New(seed)}, &witness{p}}
}

// requestIn returns the call that a context belongs to, or nil.
func requestIn(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// mark returns the process and the request to which something belongs.
func (p *process) mark(ctx context.Context) told.Mark {
	m := told.Mark{Process: p.number, Life: p.life}
	if c := requestIn(ctx); c != nil {
		m.Request = c.Number
	}
	return m
}

// A witness notes what it is told.
type witness struct{ *process }

// Observe implements middleware.Observer.
func (o *witness) Observe(ctx context.Context, e middleware.Event) {
	w := o.world
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told.Events = append(w.told.Events, told.Event{Mark: o.mark(ctx), At: w.now(), What: e.Clone()})
}

// A badObserver behaves in the plan's manner.
type badObserver struct {
	*process
	rand *rand.Rand // the world's mu guards it
}

// How often a bad observer is bad, and how long it blocks at most.
const (
	badness  = 0.03
	blocking = 3 * time.Second
)

// Observe implements middleware.Observer.
func (o *badObserver) Observe(ctx context.Context, _ middleware.Event) {
	manner, d := o.next(requestIn(ctx))
	switch manner {
	case plan.Panicking:
		panic("an observer panics")
	case plan.Blocking:
		elapse(d)
	case plan.Exiting:
		runtime.Goexit()
	}
}

// next returns what the observer does at an event of a request.
func (o *badObserver) next(c *call) (plan.Manner, time.Duration) {
	w := o.world
	w.mu.Lock()
	defer w.mu.Unlock()
	manner := w.plan.Observer
	if manner == plan.Well || w.over || o.rand.Float64() >= badness {
		return plan.Well, 0
	}
	d := time.Duration(o.rand.Int64N(int64(blocking)))
	if c != nil && manner == plan.Blocking {
		c.seen.Blocked += d
	}
	if c != nil && manner != plan.Panicking {
		c.disturbed = true
	}
	w.trace.add(event{at: w.now(), what: "*** an observer " + string(manner), process: o.number})
	return manner, d
}

// exchanges notes an exchange with Redis that is about to be made. The function that it returns notes its end.
func (p *process) exchanges(ctx context.Context, commands []transport.Command) (done func()) {
	w := p.world
	w.mu.Lock()
	defer w.mu.Unlock()
	i := len(w.told.Exchanges)
	w.told.Exchanges = append(w.told.Exchanges, told.Exchange{Mark: p.mark(ctx), Began: time.Now(), Command: commands[0][0].(string), Commands: len(commands)})
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.told.Exchanges[i].Ended = time.Now()
	}
}

// told returns what is known of a call, for the judge of the events. Its handler may have run twice, or in two steps.
func (c *call) told() told.Request {
	r := told.Request{Mark: told.Mark{Process: c.process.number, Life: c.process.life, Request: c.Number},
		Err: c.failure, Status: c.answer.status, Disturbed: c.disturbed, Panics: c.panics, Job: c.Action == plan.Update, Runs: c.runs,
		Lazy: c.Mode == plan.Lazy || c.Mode == plan.LazyElsewhere}
	for n := c.Number; c.world.seen[n] != nil; n += second {
		r.Parts = append(r.Parts, *c.world.seen[n])
	}
	return r
}

// allEndings returns all endings of sessions from outside.
func (w *World) allEndings() (all []history.Ending) {
	for _, number := range slices.Sorted(maps.Keys(w.endings)) {
		all = append(all, *w.endings[number])
	}
	return all
}
