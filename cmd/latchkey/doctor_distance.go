package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

// pings is how often doctor measures the round trip: an odd number, so that one of them is the median.
const pings = 5

// Above these limits a round trip is worth a note, or wrong. In one data center it takes less than 2 ms.
const (
	farAway = 20 * time.Millisecond
	tooFar  = 200 * time.Millisecond
)

// A round trip longer than delayed, beside one within farAway, means that something has delayed it.
const delayed = 5 * farAway

// distances are the round trips that are told apart. A finding names the longest that is exceeded, so that nodes
// that are about equally far share a line.
var distances = []time.Duration{farAway, 50 * time.Millisecond, 100 * time.Millisecond, tooFar, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second}

// A measurement is how long the round trips to one server take.
type measurement struct {
	took []time.Duration
	err  error
}

// measured begins to measure how long a round trip to Redis takes. A reply that is an error is a reply.
func (n *node) measured(ctx context.Context) <-chan measurement {
	done := make(chan measurement, 1)
	go func() {
		took, err := timed(ctx, func() error { return n.do(ctx, "PING").Error() })
		done <- measurement{took, err}
	}()
	return done
}

// distance waits for the measurement, which began before the checks.
func (d *diagnosis) distance() {
	if m := <-d.measured; m.err == nil { // otherwise there is no reply any more, which the next check says
		d.judgeDistance(m.took)
	}
}

// timed returns how long each ping takes. The pings are spread over about half a second, and come at random, as
// requests do. If another program runs one slow command after the other, pings that each follow a reply at once would
// all be served between two slow commands.
func timed(ctx context.Context, ping func() error) (took []time.Duration, _ error) {
	for i := range pings {
		if i > 0 {
			if err := pause(ctx, 75*time.Millisecond+rand.N(100*time.Millisecond)); err != nil {
				return nil, err
			}
		}
		begun := time.Now()
		if err := ping(); err != nil && !isRefused(err) {
			return nil, err
		}
		took = append(took, time.Since(begun))
	}
	return took, nil
}

// judgeDistance judges by the median, unless Redis is near and some round trips were delayed. The finding is wrong
// only if each round trip took too long: a busy machine, or a slow command of another program, delays only some of
// them.
func (d *diagnosis) judgeDistance(took []time.Duration) {
	const name = "round_trip"
	slices.Sort(took)
	fastest, median, slowest := took[0], took[len(took)/2], took[len(took)-1]
	switch {
	case fastest <= farAway && slowest > delayed:
		short, _ := slices.BinarySearch(took, delayed+1)
		d.say(note, name, "%d of %d round trips took more than %v, up to %v, and the fastest at most %v. Something delays Redis, the network or this machine at times: "+
			"SLOWLOG GET 10 shows slow commands; if none is new, see "+pages+"store/SYMPTOMS.md#slow-redis",
			len(took)-short, len(took), delayed, slowest.Round(time.Millisecond), farAway)
		return
	case median <= farAway:
		d.say(fine, name, "half of %d round trips took at most %v, and none more than %v", len(took), farAway, delayed)
		return
	}
	level := note
	if fastest > tooFar {
		level = wrong
	}
	exceeded := distances[0]
	for _, limit := range distances {
		if median > limit {
			exceeded = limit
		}
	}
	d.say(level, name, "a round trip takes more than %v, and most requests need two: run doctor on the program's machine; if it says so there, too, "+
		"put the program nearer to Redis, or find out what delays Redis ("+pages+"store/SYMPTOMS.md#slow-redis)", exceeded)
}
