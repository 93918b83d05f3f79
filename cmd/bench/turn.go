package main

import (
	"slices"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

// A turn is what one peer has shown in one round. Times are in ms.
type turn struct {
	number int // of the round

	round         float64 // until a crowd was answered; 0 where there is none
	perSecond     float64
	p50, p99, max float64 // of the requests
	unfair        float64 // most requests of a process to least; 0 where nobody looks
	queue         float64 // of one page: the longest wait ÷ the median one; 0 where there are none
	handler       float64 // the mean time in the handler; 0 where nobody looks

	requests, writes, kept int

	redisCPU, appCPU float64 // µs, for each request
	mallocs          float64 // in the app, for each request
	roundTrips       float64 // to Redis, for each request
	commands         map[string]float64
}

// newTurn puts together what was seen and what was spent.
func newTurn(t tally, redis cost, before, after app.Stats) turn {
	each := float64(t.requests)
	u := turn{
		perSecond: float64(t.requests-t.late) / t.took * 1000,
		p50:       quantile(t.latencies, 0.5),
		p99:       quantile(t.latencies, 0.99),
		max:       slices.Max(t.latencies),
		unfair:    t.unfair,
		requests:  t.requests, writes: t.writes, kept: t.kept,
		redisCPU:   float64(redis.redis.Microseconds()) / each,
		appCPU:     float64((after.CPU - before.CPU).Microseconds()) / each,
		mallocs:    float64(after.Mallocs-before.Mallocs) / each,
		roundTrips: float64(redis.reads) / each,
		commands:   make(map[string]float64),
	}
	if len(t.rounds) > 0 {
		u.round = median(t.rounds)
	}
	if len(t.pages) > 0 {
		u.queue = median(t.pages)
	}
	if slow := after.Slow - before.Slow; slow > 0 {
		u.handler = millis(after.Slept-before.Slept) / float64(slow)
	}
	for name, calls := range redis.commands {
		u.commands[name] = float64(calls) / each
	}
	return u
}
