// Package world carries out plans. It has the processes, the network, Redis and the clients of a run, in
// a bubble of fake time.
package world

import (
	"slices"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/fakeredis"
	"github.com/a2139e8d/latchkey/internal/simulation/history"
	"github.com/a2139e8d/latchkey/internal/simulation/plan"
	"github.com/a2139e8d/latchkey/internal/simulation/told"
	"github.com/a2139e8d/latchkey/middleware"
)

// A World is a run of a plan.
type World struct {
	plan  plan.Plan
	began time.Time

	// mu guards all below. It is held only briefly, and never while waiting: a bubble's time stands still
	// while a goroutine waits for a mutex.
	mu       sync.Mutex
	taken    map[time.Duration]bool // nanoseconds of events to come
	redis    *fakeredis.Server
	down     bool          // Redis is not running
	paused   time.Duration // until then Redis reads nothing
	conns    []*conn
	present  []*process // by number
	visitors []visitor
	trace    trace
	ids      []string          // of all sessions, in the order of their creation
	cookies  map[string]cookie // that open them
	dropped  []string          // the IDs of those whose cookie was deleted or replaced
	seen     map[int]*history.Request
	endings  map[int]*history.Ending
	losses   []history.Loss
	wrong    []string // what was wrong at the end
	told     told.Story
	calls    []*call
	over     bool // all requests of the plan are done

	requests sync.WaitGroup
}

// A Result is the result of a run.
type Result struct {
	Operations int // requests
	Told       int // events
	Exchanges  int // with Redis
	Violations []history.Violation
	Hash       uint64 // of the trace
	World      *World // for its story
}

// Run carries out a plan and judges it. A test may call it repeatedly, but must not be parallel.
func Run(t *testing.T, p plan.Plan) Result {
	cryptotest.SetGlobalRandom(t, p.Seed)
	w := &World{plan: p, taken: make(map[time.Duration]bool), redis: fakeredis.New(),
		seen: make(map[int]*history.Request), cookies: make(map[string]cookie), endings: make(map[int]*history.Ending), visitors: make([]visitor, p.Visitors)}
	synctest.Test(t, func(*testing.T) { w.run() })
	return w.judge()
}

// run is the whole run, in its bubble.
func (w *World) run() {
	w.began = time.Now()
	w.mu.Lock()
	for i := range w.plan.Processes {
		p := w.start(i, 0)
		w.present = append(w.present, p)
	}
	for _, f := range w.plan.Faults {
		w.at(f.At, func() { w.strike(f) })
	}
	for _, r := range w.plan.Requests {
		w.requests.Add(1)
		w.at(r.At, func() { go w.request(r) })
	}
	w.mu.Unlock()
	w.requests.Wait()
	w.mu.Lock()
	w.over = true
	w.mu.Unlock()
	w.finish()
}

// judge returns the violations.
func (w *World) judge() Result {
	var all []history.Request
	gaveBack := w.gaveBack()
	for _, r := range w.seen {
		r.GaveBack = gaveBack[r.Number%second]
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b history.Request) int { return a.Number - b.Number })
	violations := history.Check(w.terms(), all)
	for _, c := range w.calls {
		w.told.Requests = append(w.told.Requests, c.told())
	}
	w.told.Began, w.told.Endings, w.told.Strict = w.began, w.allEndings(), w.plan.Strict()
	w.told.TTL, w.told.Lifetime = w.plan.Options.TTL, w.plan.Options.Lifetime
	violations = append(violations, told.Check(w.told)...)
	for _, text := range w.wrong {
		violations = append(violations, history.Violation{Rule: "nothing is left behind", Text: text})
	}
	return Result{Operations: len(all) + len(w.endings), Violations: violations, Hash: w.trace.sum(), World: w,
		Told: len(w.told.Events), Exchanges: len(w.told.Exchanges)}
}

// gaveBack returns how long each request took to give back locks.
func (w *World) gaveBack() map[int]time.Duration {
	took := make(map[int]time.Duration)
	for _, e := range w.told.Events {
		if x, ok := e.What.(*middleware.ExchangeEvent); ok && told.GivesBack(x) {
			took[e.Request] += x.Took
		}
	}
	return took
}

// terms are the settings by which the requests are judged.
func (w *World) terms() history.Terms {
	p, o := &w.plan, &w.plan.Options
	t := history.Terms{
		TTL: o.TTL, Lifetime: o.Lifetime, Lease: o.Lease, LockWait: o.LockWait, MaxHold: o.MaxHold,
		Timeout: o.Timeout, MaxWaiters: o.MaxWaiters, Lateness: p.Lateness(),
		MaxSessions: o.MaxSessions, RefuseLogin: o.RefuseLogin,
		Strict: p.Strict(), Processes: p.Processes, Losses: w.losses,
		Turns:   p.Profile == "turns",
		Latency: 2 * o.Latency,
		Swaps:   p.Any(plan.Swap),
	}
	t.Endings = w.allEndings()
	// An extension must come in time, also behind a commit that has to send its script first.
	t.Exclusion = t.Strict && o.Lease >= 40*o.Latency+5*time.Millisecond
	t.Gap = w.gap(t.Exclusion)
	return t
}

// Broke reports whether a rule was broken.
func (r Result) Broke(rule string) bool {
	return slices.ContainsFunc(r.Violations, func(v history.Violation) bool { return v.Rule == rule })
}

// Except leaves out the violations of a rule.
func (r Result) Except(rule string) Result {
	r.Violations = slices.DeleteFunc(r.Violations, func(v history.Violation) bool { return v.Rule == rule })
	return r
}

// Sessions returns the IDs of the sessions that the violations are about. Without any, it returns nil.
func (r Result) Sessions() (ids []string) {
	for _, v := range r.Violations {
		ids = append(ids, v.Sessions...)
	}
	return ids
}

// gap is how long it may take a session to go from one holder to the next. If connections are cut, a
// message may be lost. Then the process asks by itself after half a second, or is passed over after a
// second.
func (w *World) gap(exclusion bool) time.Duration {
	o := &w.plan.Options
	for _, f := range w.plan.Faults {
		if f.Kind != plan.Cut && f.Kind != plan.Unsubscribe {
			return 0
		}
	}
	switch {
	case len(w.plan.Faults) > 0:
		return 3*time.Second + 2*o.Timeout
	case exclusion:
		return 60*time.Millisecond + 30*o.Latency
	}
	return 0
}
