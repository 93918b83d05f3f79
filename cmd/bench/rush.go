package main

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// A rush is a crowd that writes to one session, all at once: again and again,
// each time to a fresh one.
type rush struct {
	crowd
	processes int
	target    func(i int) string // of client i's request
	counter   string             // where to ask for how many were kept, and one more
	ordered   bool               // the answers tell who was served before whom
	door      time.Duration      // for this long another request keeps the crowd waiting, first
	keeper    *client            // who makes that

	took    time.Duration // by the last one
	cookies []string      // of the sessions that are ready
}

const (
	hotSize   = 100
	slowSleep = 5 * time.Millisecond
	crowdSize = 1000
	crowdDoor = 300 * time.Millisecond
)

func beginHot(ctx context.Context, f *fleet) (load, error) {
	return beginRush(ctx, f, hotSize, rush{
		target:  func(i int) string { return "/set?k" + strconv.Itoa(i) },
		counter: "/size",
	})
}

func beginSlow(ctx context.Context, f *fleet) (load, error) {
	return beginRush(ctx, f, hotSize, rush{target: slowly(slowSleep), counter: "/count"})
}

func beginCrowd(ctx context.Context, f *fleet) (load, error) {
	keeper, err := dial(ctx, f.addr(0))
	if err != nil {
		return nil, err
	}
	l, err := beginRush(ctx, f, crowdSize, rush{
		target:  func(int) string { return "/incr" },
		counter: "/count", ordered: true, door: crowdDoor, keeper: keeper,
	})
	if err != nil {
		keeper.close()
	}
	return l, err
}

func slowly(d time.Duration) func(int) string {
	return func(int) string { return "/slow?" + d.String() }
}

func beginRush(ctx context.Context, f *fleet, size int, r rush) (load, error) {
	var err error
	if r.crowd, err = dialCrowd(ctx, f, size); err != nil {
		return nil, err
	}
	r.processes = len(f.processes)
	r.took = time.Hour // not known yet
	if err := r.warmUp(); err != nil {
		r.close()
		return nil, err
	}
	return &r, nil
}

// prepare makes as many sessions as there will be time for, by the last turn.
func (r *rush) prepare(d time.Duration) error {
	r.cookies = nil
	first := r.crowd[0]
	for range min(max(1, int(d/r.took)), 200) {
		first.cookie = ""
		if _, err := first.call(http.MethodPost, "/incr"); err != nil {
			return err
		}
		r.cookies = append(r.cookies, first.cookie)
	}
	return nil
}

func (r *rush) run(time.Duration) (tally, error) {
	var t tally
	for _, cookie := range r.cookies {
		r.crowd[0].cookie = cookie
		r.share()
		if err := r.once(&t); err != nil {
			return t, err
		}
	}
	r.took = time.Duration(t.took*float64(time.Millisecond)) / time.Duration(len(r.cookies))
	return t, nil
}

func (r *rush) close() {
	r.crowd.close()
	if r.keeper != nil {
		r.keeper.close()
	}
}

// shut makes the crowd wait, if it is to, so that all of it stands there when the
// first is served. What it returns waits for the end of that.
func (r *rush) shut(t *tally) (opened func() error) {
	if r.keeper == nil {
		return func() error { return nil }
	}
	r.keeper.cookie = r.crowd[0].cookie
	done := make(chan error, 1)
	go func() {
		_, err := r.keeper.call(http.MethodPost, slowly(r.door)(0))
		done <- err
	}()
	time.Sleep(r.door / 6) // until it has the session
	t.requests++
	t.writes++
	return func() error { return <-done }
}

// once sends the crowd.
func (r *rush) once(t *tally) error {
	opened := r.shut(t)
	answers := make([]int, len(r.crowd))
	latencies := make([]float64, len(r.crowd))
	ends := make([]time.Time, len(r.crowd))
	began, err := r.all(func(i int, c *client) (err error) {
		sent := time.Now()
		answers[i], err = c.call(http.MethodPost, r.target(i))
		ends[i] = time.Now()
		latencies[i] = millis(ends[i].Sub(sent))
		return err
	})
	if err := cmp.Or(err, opened()); err != nil {
		return err
	}
	took := millis(slices.MaxFunc(ends, time.Time.Compare).Sub(began))
	t.took += took
	t.rounds = append(t.rounds, took)
	t.latencies = append(t.latencies, latencies...)
	t.requests += len(r.crowd)
	t.writes += len(r.crowd)
	if r.ordered {
		t.unfair = max(t.unfair, unfairness(owners(answers, r.processes), r.processes))
	}
	return nil
}

// check counts what is in the sessions, besides what began them.
func (r *rush) check(t *tally) error {
	for _, cookie := range r.cookies {
		r.crowd[0].cookie = cookie
		n, err := r.crowd[0].call(http.MethodGet, r.counter)
		if err != nil {
			return err
		}
		t.kept += n - 1
	}
	return nil
}

// owners returns the processes in the order in which they served their requests.
// Client i's answer is its place, and it was served by process i modulo n.
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
