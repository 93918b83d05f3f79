package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

// A rule is a limit that must hold in some cells.
type rule struct {
	workload string
	in       []int // numbers of processes; empty: all that were measured
	what     string
	limit    limit
	of       func(*result) []float64 // one figure for each round; empty if not measured
}

// A limit bounds the median of the rounds.
type limit struct {
	value float64
	least bool // the median must not be less; otherwise not more
}

func atMost(v float64) limit  { return limit{value: v} }
func atLeast(v float64) limit { return limit{value: v, least: true} }

func rules() []rule {
	const scs = "÷ scs without a lock"
	queue := figure{of: func(s sample) float64 { return s.queue }}
	overhead := figure{of: func(s sample) float64 { return s.crowd / (hotSize * millis(slowSleep)) }}
	return []rule{
		{"hot", []int{1}, "round " + scs, atMost(0.48), versus(app.SCS, roundTime)},
		{"hot", []int{2}, "round " + scs, atMost(0.62), versus(app.SCS, roundTime)},
		{"hot", []int{4}, "round " + scs, atMost(0.75), versus(app.SCS, roundTime)},
		{"hot", nil, "kept, %", atLeast(100), keptShare},
		{"hot", []int{1}, "round ÷ rueidislock's", atMost(0.15), versus(app.Rueidislock, roundTime)},
		{"bare", nil, "round " + scs, atMost(0.6), versus(app.SCS, roundTime)},
		{"slow", nil, fmt.Sprintf("round ÷ (%d × %d ms)", hotSize, slowSleep.Milliseconds()), atMost(1.1), our(overhead)},
		{"page", nil, "throughput " + scs, atLeast(1.4), versus(app.SCS, throughput)},
		{"page", nil, "99 % " + scs, atMost(0.85), versus(app.SCS, tail)},
		{"page", nil, "longest wait ÷ median wait of a page", atMost(3), our(queue)},
		{"page", nil, "kept, %", atLeast(100), keptShare},
		{"spread", []int{1, 2}, "throughput " + scs, atLeast(1.45), versus(app.SCS, throughput)},
		{"spread", []int{4}, "throughput " + scs, atLeast(1.3), versus(app.SCS, throughput)},
		{"spread", []int{1, 2}, "Redis's CPU " + scs, atMost(0.75), versus(app.SCS, redisCPU)},
		{"spread", []int{4}, "Redis's CPU " + scs, atMost(0.9), versus(app.SCS, redisCPU)},
		{"read", []int{1}, "throughput " + scs, atLeast(1.8), versus(app.SCS, throughput)},
		{"read", []int{2}, "throughput " + scs, atLeast(1.6), versus(app.SCS, throughput)},
		{"read", []int{1, 2}, "Redis's CPU " + scs, atMost(0.55), versus(app.SCS, redisCPU)},
		{"read", nil, "round trips", atMost(1), our(roundTrips)},
		{"200KB", nil, "throughput " + scs, atLeast(1.5), versus(app.SCS, throughput)},
		{"far", nil, "throughput " + scs, atLeast(1.1), versus(app.SCS, throughput)},
		{"crowd", nil, "Redis commands per request", atMost(3), our(commands)},
		{"crowd", nil, "most ÷ least of the processes", atMost(1.3), our(unevenness)},
		{"crowd", nil, "kept, %", atLeast(100), keptShare},
		{"lock", nil, "99 % ÷ rueidislock's", atMost(0.3), versus(app.Rueidislock, tail)},
		{"memory", nil, "Redis's bytes per session", atMost(315), our(memory)},
	}
}

// rulesAgainst are for -against: a lone client must not pay for the gains of many.
func rulesAgainst() []rule {
	return []rule{
		{"lone", nil, "median ÷ the other tree's", atMost(1.03), func(r *result) []float64 {
			return ratios(r.peers[0], r.peers[1], middle)
		}},
	}
}

// rulesObserved are for -peer latchkey,… with observers: how fast Latchkey is with an observer, compared with none in the
// same server.
func rulesObserved(contenders []contender) (all []rule) {
	for _, c := range contenders {
		if c.Share == 0 {
			continue
		}
		all = append(all,
			rule{"hot", nil, "speed, " + c.Title, atLeast(c.Share), func(r *result) []float64 {
				return ratiosOf(r, c.Beside, c.Name, roundTime)
			}},
			rule{"spread", nil, "throughput, " + c.Title, atLeast(c.Share), func(r *result) []float64 {
				return ratiosOf(r, c.Name, c.Beside, throughput)
			}})
	}
	return all
}

// ratiosOf divides the figures of one peer by those of another, if both were measured.
func ratiosOf(r *result, over, under string, f figure) []float64 {
	a, b := r.find(over), r.find(under)
	if a == nil || b == nil {
		return nil
	}
	return ratios(a, b, f)
}

// our is a figure of Latchkey.
func our(f figure) func(*result) []float64 {
	return func(r *result) []float64 {
		if o := r.find(app.Latchkey); o != nil {
			return o.of(f)
		}
		return nil
	}
}

// versus is the ratio to a peer in each round.
func versus(name string, f figure) func(*result) []float64 {
	return func(r *result) []float64 { return ratiosOf(r, app.Latchkey, name, f) }
}

// keptShare is one figure for all rounds: no round may lose a write.
func keptShare(r *result) []float64 {
	if o := r.find(app.Latchkey); o != nil {
		if share, ok := o.kept(); ok {
			return []float64{percentage(share)}
		}
	}
	return nil
}

// A spread writes the median of some numbers, and a range.
type spread struct {
	title string
	of    func([]float64) string
}

var (
	ofRounds = spread{"median (range of the rounds)", withRange}
	ofMedian = spread{"median (95 % confidence)", withLikely} // for limits near 1
)

// mustHold applies rules to their cells, and returns a table as Markdown.
func mustHold(rules []rule, results []*result, s spread) string {
	rows := [][]string{{"", s.title, "limit", "met"}}
	for _, rule := range rules {
		for _, r := range results {
			if r.name == rule.workload && (rule.in == nil || slices.Contains(rule.in, r.n)) {
				rows = append(rows, rule.judge(r, s))
			}
		}
	}
	return markdown(rows)
}

func (u rule) judge(r *result, s spread) []string {
	name := fmt.Sprintf("%s: %s", r.cell, u.what)
	numbers := u.of(r)
	switch {
	case len(numbers) == 0:
		return []string{name, "not measured", u.limit.String(), "–"}
	case u.limit.met(median(numbers)):
		return []string{name, s.of(numbers), u.limit.String(), "yes"}
	default:
		return []string{name, s.of(numbers), u.limit.String(), "**no**"}
	}
}

// met compares the digits that the table shows. A figure that must not be less than a limit is not rounded up
// to the limit.
func (l limit) met(v float64) bool {
	scale := 100.0
	switch {
	case v >= 100:
		scale = 1
	case v >= 10:
		scale = 10
	}
	if l.least {
		return math.Floor(v*scale)/scale >= l.value
	}
	return math.Round(v*scale)/scale <= l.value
}

func (l limit) String() string {
	if l.least {
		return fmt.Sprintf("≥ %g", l.value)
	}
	return fmt.Sprintf("≤ %g", l.value)
}
