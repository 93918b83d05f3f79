package main

import (
	"context"
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

// A workload is a kind of load.
type workload struct {
	name      string
	about     string
	figure    figure // the one that peers are compared by
	processes []int  // in how many of them the app is measured
	times     int    // how many times as long as others a turn takes, if not once
	alone     bool   // the lock, without sessions
	peers     func(app.Peer) bool
	begin     func(context.Context, *fleet) (load, error)
}

// A load is a workload under way at one peer. Each turn calls its methods in
// this order.
type load interface {
	// prepare makes the sessions for a turn of about d.
	prepare(d time.Duration) error
	// run is what is measured.
	run(d time.Duration) (tally, error)
	// check completes the tally with what was kept.
	check(*tally) error
	close()
}

// A tally is what the clients have seen in one turn. Times are in ms.
type tally struct {
	took      float64
	rounds    []float64 // of each crowd, until all of it was answered
	latencies []float64 // of each request
	requests  int
	late      int // of these, after what is counted as time
	writes    int // answered, that must be in the record
	kept      int // that are
	unfair    float64
	pages     []float64 // of each page, its longest wait ÷ its median one
}

func workloads() []workload {
	return []workload{{
		name: "hot", figure: roundTime, processes: []int{1, 2, 4}, peers: all, begin: beginHot,
		about: fmt.Sprintf("%d concurrent writes of distinct keys to one fresh session", hotSize),
	}, {
		name: "page", figure: tail, processes: []int{2}, peers: all, begin: beginPage,
		about: fmt.Sprintf("%d visitors open page after page; each page is %d parallel writes to the visitor's session", pageVisitors, pageRequests),
	}, {
		name: "spread", figure: throughput, processes: []int{1, 2}, peers: all, begin: beginSpread,
		about: fmt.Sprintf("%d clients, each with a session of its own, add 1 to a counter in it, over and over", visitors),
	}, {
		name: "read", figure: throughput, processes: []int{1, 2}, peers: all, begin: beginRead,
		about: fmt.Sprintf("%d clients, each with a session of its own, read a counter in it, over and over", visitors),
	}, {
		name: "slow", figure: roundTime, processes: []int{1, 2}, peers: quick, begin: beginSlow,
		about: fmt.Sprintf("%d concurrent writes to one fresh session, in a handler that sleeps for %d ms", hotSize, slowSleep.Milliseconds()),
	}, {
		name: "big", figure: throughput, processes: []int{1}, peers: all, begin: beginBig,
		about: fmt.Sprintf("as spread, with %d values of %d bytes in each session", app.BigValues, app.BigValue),
	}, {
		name: "crowd", figure: roundTime, processes: []int{4}, peers: scales, begin: beginCrowd,
		about: fmt.Sprintf("%d concurrent writes to one fresh session, which another request holds for %d ms first, so that all of them wait", crowdSize, crowdDoor.Milliseconds()),
	}, {
		name: "lock", figure: tail, processes: []int{4}, times: 6, alone: true, peers: shared, begin: beginLock,
		about: fmt.Sprintf("the lock alone, without sessions and HTTP: in each process %d goroutines take one key, hold it for %d ms, and give it back, over and over", aloneGoroutines, aloneHold.Milliseconds()),
	}}
}

func all(app.Peer) bool { return true }

// shared are the peers whose lock can be measured without any session.
func shared(p app.Peer) bool { return p.Lock != "" }

// quick are all but the one that takes a quarter of a minute for a crowd.
func quick(p app.Peer) bool { return p.Name != "spin200" }

// scales are the peers that serve a large crowd in a reasonable time.
func scales(p app.Peer) bool {
	return p.Name == app.Latchkey || p.Name == app.Rueidislock || p.Name == "redsync"
}
