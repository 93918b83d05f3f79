package main

import (
	"math"
	"slices"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

// A sample has the figures of one contender in one round. Times are in ms, costs per request.
type sample struct {
	round     int
	crowd     float64 // until a crowd was answered; 0 if there is none
	perSecond float64
	p50, p99  float64
	max       float64
	unfair    float64 // requests of the luckiest process ÷ the unluckiest's; 0 if not measured
	queue     float64 // longest wait ÷ median wait of a page; 0 if there are no pages

	writes, kept int

	redisCPU, appCPU float64 // µs
	mallocs          float64 // in the application
	roundTrips       float64 // to Redis
	commands         map[string]float64

	memory float64 // Redis's bytes per session; 0 if not measured
}

// newSample combines what the clients saw with the costs.
func newSample(round int, t tally, before, after look) sample {
	each := float64(t.requests)
	redis := after.redis.since(before.redis)
	s := sample{
		round:     round,
		perSecond: float64(t.requests-t.late) / t.took * 1000,
		p50:       quantile(t.latencies, 0.5),
		p99:       quantile(t.latencies, 0.99),
		max:       slices.Max(t.latencies),
		unfair:    t.unfair,
		writes:    t.writes, kept: t.kept,
		redisCPU:   float64(redis.cpu.Microseconds()) / each,
		appCPU:     float64((after.app.CPU - before.app.CPU).Microseconds()) / each,
		mallocs:    float64(after.app.Mallocs-before.app.Mallocs) / each,
		roundTrips: float64(redis.reads) / each,
		commands:   make(map[string]float64),
	}
	if len(t.rounds) > 0 {
		s.crowd = median(t.rounds)
	}
	if len(t.pages) > 0 {
		s.queue = median(t.pages)
	}
	for name, calls := range redis.commands {
		s.commands[name] = float64(calls) / each
	}
	return s
}

// A figure is one number of a sample.
type figure struct {
	name string
	of   func(sample) float64 // 0 if there is no such number
}

var (
	roundTime  = figure{"round, ms", func(s sample) float64 { return s.crowd }}
	middle     = figure{"median, ms", func(s sample) float64 { return s.p50 }}
	tail       = figure{"99 %, ms", func(s sample) float64 { return s.p99 }}
	longest    = figure{"max, ms", func(s sample) float64 { return s.max }}
	throughput = figure{"per second", func(s sample) float64 { return s.perSecond }}
	roundTrips = figure{"round trips", func(s sample) float64 { return s.roundTrips }}
	commands   = figure{"commands", sample.allCommands}
	redisCPU   = figure{"Redis, µs", func(s sample) float64 { return s.redisCPU }}
	appCPU     = figure{"app, µs", func(s sample) float64 { return s.appCPU }}
	mallocs    = figure{"allocations", func(s sample) float64 { return s.mallocs }}
	allCPU     = figure{"CPU, µs", func(s sample) float64 { return s.redisCPU + s.appCPU }}
	unevenness = figure{"most ÷ least", func(s sample) float64 { return s.unfair }}
	memory     = figure{"bytes", func(s sample) float64 { return s.memory }}
)

// allFigures returns the figures that have a column, in the order of the tables.
func allFigures() []figure {
	return []figure{roundTime, middle, tail, longest, throughput,
		roundTrips, commands, redisCPU, appCPU, mallocs, unevenness, memory}
}

func (s sample) allCommands() float64 {
	sum := 0.0
	for _, n := range s.commands {
		sum += n
	}
	return sum
}

// of returns the figure of each sample.
func (o *outcome) of(f figure) []float64 {
	var numbers []float64
	for _, s := range o.samples {
		numbers = append(numbers, f.of(s))
	}
	return numbers
}

// ratios divides the figures of a by those of b, in each round in which both took
// part.
func ratios(a, b *outcome, f figure) []float64 {
	return paired(a, b, func(s, t sample) float64 { return f.of(s) / f.of(t) })
}

// differences subtracts the figures of b from those of a in the same way.
func differences(a, b *outcome, f figure) []float64 {
	return paired(a, b, func(s, t sample) float64 { return f.of(s) - f.of(t) })
}

func paired(a, b *outcome, compare func(s, t sample) float64) []float64 {
	var all []float64
	for _, s := range a.samples {
		for _, t := range b.samples {
			if s.round == t.round {
				all = append(all, compare(s, t))
			}
		}
	}
	return all
}

// kept returns the share of the answered writes that were found in the record, in all rounds together. ok is
// false if there were no writes, or no record.
func (o *outcome) kept() (share float64, ok bool) {
	writes, kept := 0, 0
	for _, s := range o.samples {
		writes, kept = writes+s.writes, kept+s.kept
	}
	return float64(kept) / float64(writes), writes > 0 && o.peer.Name != app.Floor
}

// quantile returns the smallest number that a share q of the numbers does not exceed: 0.5 gives the median,
// 0.99 a number that only one in a hundred exceeds. There must be at least one number.
func quantile(numbers []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(numbers))
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// median returns the middle of the numbers, of which there must be at least one.
func median(numbers []float64) float64 {
	sorted := slices.Sorted(slices.Values(numbers))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// likely returns the range in which the median of many more rounds would lie, with at least 95 % confidence. It uses
// only the order of the numbers, so it does not matter how far away outliers are. Fewer than six numbers cannot give that
// confidence: then the range is that of all numbers.
func likely(numbers []float64) (low, high float64) {
	sorted := slices.Sorted(slices.Values(numbers))
	n := float64(len(sorted))
	skip := max(0, int((n-1-1.96*math.Sqrt(n))/2)) // the sign test, with its correction for continuity
	return sorted[skip], sorted[len(sorted)-1-skip]
}

// owners returns the processes in the order in which they served their requests. Client i's response is its
// place in that order, and process i modulo n served it.
func owners(answers []int, n int) []int {
	clients := make([]int, len(answers))
	for i := range clients {
		clients[i] = i
	}
	slices.SortFunc(clients, func(a, b int) int { return answers[a] - answers[b] })
	for i, client := range clients {
		clients[i] = client % n
	}
	return clients
}

// unfairness returns the ratio of the requests served by the luckiest of n processes to those served by the
// unluckiest, as long as all processes had requests left. order has the process of each request; all
// processes have equally many requests.
func unfairness(order []int, n int) float64 {
	served := make([]int, n)
	for _, p := range order {
		served[p]++
		if served[p] == len(order)/n {
			break
		}
	}
	return mostToLeast(served)
}

// mostToLeast returns the largest count ÷ the smallest. It is infinite if there is a zero.
func mostToLeast(counts []int) float64 {
	least := slices.Min(counts)
	if least == 0 {
		return math.Inf(1)
	}
	return float64(slices.Max(counts)) / float64(least)
}
