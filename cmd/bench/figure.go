package main

// A figure is one number of a turn.
type figure struct {
	name string
	of   func(turn) float64 // 0 where there is no such number
}

var (
	roundTime  = figure{"round, ms", func(t turn) float64 { return t.round }}
	middle     = figure{"median, ms", func(t turn) float64 { return t.p50 }}
	tail       = figure{"99 %, ms", func(t turn) float64 { return t.p99 }}
	longest    = figure{"max, ms", func(t turn) float64 { return t.max }}
	throughput = figure{"per second", func(t turn) float64 { return t.perSecond }}
	handler    = figure{"handler, ms", func(t turn) float64 { return t.handler }}
	roundTrips = figure{"round trips", func(t turn) float64 { return t.roundTrips }}
	commands   = figure{"commands", turn.allCommands}
	redisCPU   = figure{"Redis, µs", func(t turn) float64 { return t.redisCPU }}
	appCPU     = figure{"app, µs", func(t turn) float64 { return t.appCPU }}
	mallocs    = figure{"allocations", func(t turn) float64 { return t.mallocs }}
	unevenness = figure{"most ÷ least", func(t turn) float64 { return t.unfair }}
)

// allFigures returns all of them, in the order of the tables.
func allFigures() []figure {
	return []figure{roundTime, middle, tail, longest, throughput, handler,
		roundTrips, commands, redisCPU, appCPU, mallocs, unevenness}
}

func (t turn) allCommands() float64 {
	sum := 0.0
	for _, n := range t.commands {
		sum += n
	}
	return sum
}

// of returns the figures of all turns.
func (o *outcome) of(f figure) []float64 {
	var numbers []float64
	for _, t := range o.turns {
		numbers = append(numbers, f.of(t))
	}
	return numbers
}

// ratios divides the figures of a by those of b, in each round in which both took
// part.
func ratios(a, b *outcome, f figure) []float64 {
	var all []float64
	for _, t := range a.turns {
		for _, u := range b.turns {
			if t.number == u.number {
				all = append(all, f.of(t)/f.of(u))
			}
		}
	}
	return all
}
