package main

import (
	"fmt"
	"math"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

// A rule is what must hold in some cells.
type rule struct {
	workload string
	in       []int // processes; none: all that were measured
	what     string
	limit    limit
	of       gauge
}

// A limit is for the median over the rounds.
type limit struct {
	value float64
	least bool // not below it, instead of not above it
}

func atMost(v float64) limit  { return limit{value: v} }
func atLeast(v float64) limit { return limit{value: v, least: true} }

// A gauge returns a figure of each round, none where it was not measured, and
// whatever there is to say about it.
type gauge func(*result) (figures []float64, note string)

func rules() []rule {
	const scs = "÷ scs without a lock"
	return []rule{
		{"hot", []int{1}, "round " + scs, atMost(0.6), versus(app.SCS, roundTime)},
		{"hot", []int{2, 4}, "round " + scs, atMost(1), versus(app.SCS, roundTime)},
		{"hot", nil, "kept, %", atLeast(100), keptShare},
		{"hot", []int{1}, "round ÷ best locking peer's", atMost(0.15), versusBest},
		{"slow", nil, fmt.Sprintf("round ÷ (%d × %d ms)", hotSize, slowSleep.Milliseconds()), atMost(1.1), versusSleep},
		{"slow", nil, fmt.Sprintf("round ÷ (%d × time in the handler)", hotSize), atMost(1.1), versusHandler},
		{"page", nil, "99 % " + scs, atMost(1.5), versus(app.SCS, tail)},
		{"page", nil, "of each page, the longest wait ÷ the median one", atMost(3), queueing},
		{"page", nil, "kept, %", atLeast(100), keptShare},
		{"spread", nil, "throughput " + scs, atLeast(1.1), versus(app.SCS, throughput)},
		{"read", nil, "throughput " + scs, atLeast(1.1), versus(app.SCS, throughput)},
		{"read", nil, "round trips", atMost(1), our(roundTrips)},
		{"crowd", nil, "Redis commands per request", atMost(3), our(commands)},
		{"crowd", nil, "most ÷ least of the processes", atMost(1.3), our(unevenness)},
		{"crowd", nil, "kept, %", atLeast(100), keptShare},
		{"lock", nil, "99 % ÷ rueidislock's", atMost(0.3), versus(app.Rueidislock, tail)},
	}
}

// our is a figure of Latchkey's.
func our(f figure) gauge {
	return func(r *result) ([]float64, string) {
		o := r.find(app.Latchkey)
		if o == nil {
			return nil, ""
		}
		return o.of(f), ""
	}
}

// versus is the ratio to a peer, round by round.
func versus(name string, f figure) gauge {
	return func(r *result) ([]float64, string) {
		ours, theirs := r.find(app.Latchkey), r.find(name)
		if ours == nil || theirs == nil {
			return nil, ""
		}
		return ratios(ours, theirs, f), ""
	}
}

// versusBest is the ratio to the fastest peer that has a lock.
func versusBest(r *result) ([]float64, string) {
	var best *outcome
	fastest := math.Inf(1)
	for _, o := range r.peers {
		if !o.peer.Locks || o.peer.Name == app.Latchkey || len(o.turns) == 0 {
			continue
		}
		if took := median(o.of(roundTime)); took < fastest {
			best, fastest = o, took
		}
	}
	if best == nil {
		return nil, ""
	}
	figures, _ := versus(best.peer.Name, roundTime)(r)
	return figures, best.peer.Title
}

// versusSleep is the ratio to the time in which the handlers would sleep one
// after another, if sleeping took no longer than asked for.
func versusSleep(r *result) ([]float64, string) {
	return our(figure{of: func(t turn) float64 { return t.round / (hotSize * millis(slowSleep)) }})(r)
}

// versusHandler is the same with the time that they really took.
func versusHandler(r *result) ([]float64, string) {
	return our(figure{of: func(t turn) float64 { return t.round / (hotSize * t.handler) }})(r)
}

// queueing is about those who wait for each other: the requests of one page. It notes
// the same of all pages together, which tells more of the machine.
func queueing(r *result) ([]float64, string) {
	figures, note := our(figure{of: func(t turn) float64 { return t.queue }})(r)
	all := figure{of: func(t turn) float64 { return t.max / t.p50 }}
	ours, scs := r.find(app.Latchkey), r.find(app.SCS)
	if ours != nil && scs != nil && len(ours.turns) > 0 && len(scs.turns) > 0 {
		note = fmt.Sprintf("of all requests %s, %s without a lock", number(median(ours.of(all))), number(median(scs.of(all))))
	}
	return figures, note
}

// keptShare is one figure for all rounds: none of them may lose anything.
func keptShare(r *result) ([]float64, string) {
	if o := r.find(app.Latchkey); o != nil {
		if share, ok := o.kept(); ok {
			return []float64{percentage(share)}, ""
		}
	}
	return nil, ""
}
