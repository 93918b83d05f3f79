package plan

import (
	"slices"
	"time"
)

// A load says which requests come, and how many.
type load struct {
	visitors int
	users    int
	count    int
	gap      time.Duration // between two requests, on average
	burst    float64       // the share of the requests that come at the same time as others
	work     time.Duration // of a handler, on average
	overlong float64       // the share of the handlers that work for longer than MaxHold
	leaving  float64       // the share of the clients that go away
	busy     float64       // the share of requests that go to the first process
	large    float64       // the share of writes that make a session large
	actions  []choice[Action]
	modes    []choice[Mode]
	fixed    bool // all handlers work exactly as long as work
	patient  bool // only clients of the first process leave
}

// drawLoad returns a random load.
func drawLoad(d drawer) load {
	l := load{
		visitors: d.number(1, 6),
		users:    d.number(1, 2),
		count:    d.number(60, 400),
		gap:      d.within(200*time.Microsecond, 50*time.Millisecond),
		burst:    d.Float64(),
		overlong: 0.01,
		large:    pick(d, []choice[float64]{{1, 0}, {2, 0.3}, {1, 0.9}}),
		leaving:  pick(d, []choice[float64]{{2, 0}, {2, 0.05}, {1, 0.4}}),
		actions:  usual,
		modes:    []choice[Mode]{{10, Exclusive}, {2, Lazy}, {1, LazyElsewhere}, {4, Optimistic}},
	}
	l.work = d.within(l.gap/20, 4*l.gap)
	if d.chance(0.5) {
		l.actions = slices.Concat(usual, ofUsers)
	}
	return l
}

var ofUsers = []choice[Action]{{12, Login}, {2, End}, {2, EndAll}, {2, EndAllBut}, {3, EndOthers}}

var usual = []choice[Action]{
	{40, Append}, {10, Look}, {3, Panic}, {2, Unencodable}, {2, TooLarge}, {3, Early}, {2, Late},
	{2, Crumble}, {3, Flush}, {2, Elsewhere}, {3, Renew}, {2, Destroy}, {2, Clear},
	{5, Reopen}, {3, Discard}, {5, Update},
}

// begins is when the visitors send their second requests. By then they have their cookies.
const begins = 200 * time.Millisecond

// requests draws the requests of a plan.
func (l *load) requests(d drawer, p *Plan) {
	for v := range l.visitors {
		p.Requests = append(p.Requests, Request{At: d.below(begins / 4), Visitor: v,
			Process: d.IntN(p.Processes), Action: Append, Mode: Exclusive})
	}
	at := begins
	for range l.count {
		if d.chance(l.burst) {
			at += d.below(50 * time.Microsecond)
		} else {
			at += d.within(l.gap/10, 10*l.gap)
		}
		p.Requests = append(p.Requests, l.request(d, p, at))
	}
	slices.SortStableFunc(p.Requests, func(a, b Request) int { return int(a.At - b.At) })
	for i := range p.Requests {
		p.Requests[i].Number = i + 1
	}
}

func (l *load) request(d drawer, p *Plan, at time.Duration) Request {
	r := Request{
		At:      at,
		Visitor: d.IntN(l.visitors),
		Process: d.IntN(p.Processes),
		Action:  pick(d, l.actions),
		Mode:    pick(d, l.modes),
		Heeds:   d.chance(0.5),
	}
	if d.chance(l.busy) {
		r.Process = 0
	}
	if r.Action == Look && d.chance(0.6) || r.Action == Append && d.chance(0.01) {
		r.Mode = ReadOnly // in this mode an append is refused
	}
	if r.Action == Update || !r.Action.Opens() {
		r.Mode = Exclusive // Update has no other mode
	}
	r.User = d.IntN(max(1, l.users))
	switch {
	case l.fixed:
		r.Before = l.work + d.below(time.Microsecond)
	case d.chance(l.overlong):
		r.Before = d.within(p.Options.MaxHold, p.Options.MaxHold*3/2)
	case d.chance(0.7):
		r.Before = d.within(l.work/10, l.work*3)
	}
	switch r.Action {
	case Early, Flush, Elsewhere, Late, Reopen, EndOthers:
		r.After = d.within(l.work/10, l.work*3)
	}
	if d.chance(0.1) {
		r.After = d.within(l.work/10, l.work*3)
	}
	if d.chance(l.leaving) && !(l.patient && r.Process > 0) {
		r.Leave = d.within(time.Millisecond, 2*l.gap+2*l.work+2*time.Millisecond)
		r.Deadline = d.chance(0.3)
	}
	r.Large = d.chance(l.large)
	return r
}

// turns gives one process the requests of many visitors with impatient clients, and the other processes few. All
// processes always want the same session.
func turns(d drawer, p *Plan, l *load) {
	p.Processes = d.number(2, 4)
	o := &p.Options
	o.Lease, o.Timeout, o.MaxHold, o.MaxWaiters = 10*time.Second, 2*time.Second, time.Minute, 200
	o.LockWait = d.within(500*time.Millisecond, 2*time.Second)
	o.Latency = d.within(20*time.Microsecond, 200*time.Microsecond)
	*l = load{
		visitors: 1, count: d.number(700, 1000), fixed: true,
		work:    d.within(20*time.Millisecond, 60*time.Millisecond),
		actions: []choice[Action]{{1, Append}},
		modes:   []choice[Mode]{{1, Exclusive}},
		busy:    0.4, patient: true,
	}
	l.gap = l.work / 6
	if d.chance(0.5) {
		l.leaving = 0.5
	}
}
