package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

// A workload is a kind of load.
type workload struct {
	name      string
	about     string
	figure    figure        // by which peers are compared
	processes []int         // numbers of processes of the application
	delay     time.Duration // of a round trip to Redis
	times     int           // how many times as long as usual a round is; 0 means once
	alone     bool          // the lock, without sessions
	bare      bool          // the application has no other data on its heap
	sessions  int           // if not 0, only the memory of so many sessions is measured
	versus    bool          // also measured with -against
	peers     func(app.Peer) bool
	begin     func(context.Context, fleet) (load, error)
}

// A load is a workload that has begun, on one peer. In each round its methods are called in this order.
type load interface {
	// prepare makes the sessions for a round of about d.
	prepare(d time.Duration) error
	// run is measured.
	run(d time.Duration) (tally, error)
	// check adds the number of kept writes to the tally.
	check(*tally) error
	close()
}

// A tally has what the clients saw in one round. Times are in ms.
type tally struct {
	took      float64
	rounds    []float64 // for each crowd, the time until all its requests were answered
	latencies []float64 // of each request
	requests  int
	late      int // requests answered after took
	writes    int // answered, so they must be in the record
	kept      int // found in the record
	unfair    float64
	pages     []float64 // for each page, longest wait ÷ median wait
}

const (
	hotSize         = 100
	slowSleep       = 5 * time.Millisecond
	crowdSize       = 1000
	crowdWait       = 300 * time.Millisecond
	crowdAfter      = 50 * time.Millisecond // until the other request has the session
	pageVisitors    = 16
	pageRequests    = 8
	visitors        = 64
	farDelay        = time.Millisecond
	aloneGoroutines = 16
	aloneHold       = time.Millisecond
)

func workloads() []workload {
	incr := func(int) string { return "/incr" }
	count := func(int) string { return "/count" }
	slow := func(int) string { return "/slow?" + slowSleep.String() }
	set := func(i int) string { return "/set?k" + strconv.Itoa(i) }
	rush := pages{visitors: 1, parallel: hotSize, fresh: true, method: http.MethodPost, target: set, step: 1, counter: "/size"}
	loop := pages{visitors: visitors, parallel: 1, method: http.MethodPost, target: incr, step: 1, counter: "/count"}
	reads := pages{visitors: visitors, parallel: 1, method: http.MethodGet, target: count, counter: "/count"}
	lone := loop
	lone.visitors = 1
	sized := func(fill string) func(context.Context, fleet) (load, error) {
		p := loop
		p.fill = fill
		return p.begin
	}
	all := func(app.Peer) bool { return true }
	return []workload{{
		name: "hot", figure: roundTime, processes: []int{1, 2, 4}, versus: true, peers: all, begin: rush.begin,
		about: fmt.Sprintf("%d concurrent writes of distinct keys to one fresh session", hotSize),
	}, {
		name: "bare", figure: roundTime, processes: []int{1}, bare: true, peers: regular, begin: rush.begin,
		about: "as hot, without the 64 MB of heap",
	}, {
		name: "page", figure: tail, processes: []int{2}, versus: true, peers: all,
		begin: pages{visitors: pageVisitors, parallel: pageRequests, method: http.MethodPost, target: incr, step: 1, counter: "/count"}.begin,
		about: fmt.Sprintf("%d visitors open page after page; each page is %d parallel writes to the visitor's session", pageVisitors, pageRequests),
	}, {
		name: "spread", figure: throughput, processes: []int{1, 2, 4}, versus: true, peers: all, begin: loop.begin,
		about: fmt.Sprintf("%d clients, each with its own session, repeatedly add 1 to a counter in the session", visitors),
	}, {
		name: "read", figure: throughput, processes: []int{1, 2, 4}, versus: true, peers: all, begin: reads.begin,
		about: fmt.Sprintf("%d clients, each with its own session, repeatedly read a counter in the session", visitors),
	}, {
		name: "lone", figure: middle, processes: []int{1}, versus: true, peers: all, begin: lone.begin,
		about: "one client repeatedly adds 1 to a counter in its session, and there are no other requests",
	}, {
		name: "slow", figure: roundTime, processes: []int{1, 2},
		peers: func(p app.Peer) bool { return p.Name != "spin200" }, // a crowd takes it a quarter of a minute
		begin: pages{visitors: 1, parallel: hotSize, fresh: true, method: http.MethodPost, target: slow, step: 1, counter: "/count"}.begin,
		about: fmt.Sprintf("%d concurrent writes to one fresh session, in a handler that sleeps for %d ms", hotSize, slowSleep.Milliseconds()),
	}, {
		name: "100B", figure: throughput, processes: []int{1}, peers: regular, begin: sized("/login"),
		about: "as spread, with five more values in each session, of 100 bytes together",
	}, {
		name: "2KB", figure: throughput, processes: []int{1}, peers: regular, begin: sized("/fill?2"),
		about: fmt.Sprintf("as spread, with 2 more values of %d bytes in each session", app.BigValue),
	}, {
		name: "40KB", figure: throughput, processes: []int{1}, peers: regular, begin: sized("/fill?40"),
		about: fmt.Sprintf("as spread, with 40 more values of %d bytes in each session", app.BigValue),
	}, {
		name: "200KB", figure: throughput, processes: []int{1, 2}, peers: all, begin: sized("/fill?200"),
		about: fmt.Sprintf("as spread, with 200 more values of %d bytes in each session", app.BigValue),
	}, {
		name: "far100B", figure: throughput, processes: []int{1}, delay: farDelay, peers: regular, begin: sized("/login"),
		about: "as 100B",
	}, {
		name: "far", figure: throughput, processes: []int{1}, delay: farDelay, versus: true, peers: all, begin: sized("/fill?40"),
		about: "as 40KB",
	}, {
		name: "crowd", figure: roundTime, processes: []int{4},
		peers: func(p app.Peer) bool { // the peers that serve it in a reasonable time
			return p.Name == app.Latchkey || p.Name == app.Rueidislock || p.Name == "redsync" || p.Name == app.Floor
		},
		begin: pages{visitors: 1, parallel: crowdSize, fresh: true, method: http.MethodPost, target: incr, step: 1, counter: "/count", wait: crowdWait, ordered: true}.begin,
		about: fmt.Sprintf("%d concurrent writes to one fresh session, which another request holds for the first %d ms of the round, so that all writes wait",
			crowdSize, (crowdWait - crowdAfter).Milliseconds()),
	}, {
		name: "lock", figure: tail, processes: []int{4}, times: 6, alone: true,
		peers: func(p app.Peer) bool { return p.Lock != "" },
		begin: beginLock,
		about: fmt.Sprintf("the lock alone, without sessions and HTTP: in each process %d goroutines repeatedly lock one key, hold it for %d ms, and release it", aloneGoroutines, aloneHold.Milliseconds()),
	}, {
		name: "memory", figure: memory, processes: []int{1}, sessions: 100_000,
		peers: func(p app.Peer) bool { return p.Name == app.Latchkey || p.Name == app.SCS },
		about: "the memory of Redis for each of 100 000 sessions, with five values of 100 bytes together",
	}}
}

// regular are the peers with a limit, which take part in every round. The other peers only show how far away
// they are, so every third round is enough.
func regular(p app.Peer) bool {
	return p.Name == app.Latchkey || p.Name == app.SCS || p.Name == app.Floor || p.Observed
}

// seldom is how seldom the others take part: in every third round.
const seldom = 3

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
