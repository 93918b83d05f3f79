package main

import (
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

// distances are the round trips that are told apart. A finding names the longest that is exceeded, so that nodes
// that are about equally far share a line.
var distances = []time.Duration{farAway, 50 * time.Millisecond, 100 * time.Millisecond, tooFar, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second}

// distance measures how long a round trip to Redis takes. A reply that is an error is a reply.
func (d *diagnosis) distance() {
	took, err := timed(func() error { return d.node.do(d.ctx, "PING").Error() })
	if err == nil { // otherwise there is no reply any more, which the next check says
		d.judgeDistance(took)
	}
}

// timed returns how long each ping takes. They come at random, as requests do. Suppose that another program runs one slow
// command after the other: pings that follow at once on a reply would all be served between two of these.
func timed(ping func() error) (took []time.Duration, _ error) {
	for i := range pings {
		if i > 0 {
			time.Sleep(10*time.Millisecond + rand.N(40*time.Millisecond))
		}
		begun := time.Now()
		if err := ping(); err != nil && !isRefused(err) {
			return nil, err
		}
		took = append(took, time.Since(begun))
	}
	return took, nil
}

// judgeDistance judges by the median. It is only wrong if each round trip took too long: a busy machine, or a slow
// command of another program, delays some of them.
func (d *diagnosis) judgeDistance(took []time.Duration) {
	const name = "round_trip"
	slices.Sort(took)
	fastest, median := took[0], took[len(took)/2]
	if median <= farAway {
		d.say(fine, name, "a round trip takes at most %v", farAway)
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
		"put the program nearer to Redis, or find out what delays Redis (store/SYMPTOMS.md#slow-redis)", exceeded)
}
