package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Pages are visitors with a session each, who open page after page. A page makes some requests at once, and
// the next page follows when all of them are answered. One request per page is a loop; one visitor and many
// requests are a rush.
type pages struct {
	visitors, parallel int
	method             string
	target             func(i int) string // of request i of a page
	step               int                // how many writes each request is
	counter            string             // path that returns the number of writes
	fresh              bool               // each page has a new session
	fill               string             // path that fills each session first, if not empty
	wait               time.Duration      // another request holds the session of each page for this long
	ordered            bool               // the responses show the order in which the requests were served

	clients   crowd
	views     []crowd // the clients by visitor
	keeper    *client // makes the request that holds the session
	processes int
	took      time.Duration // by a fresh page in the last round
	cookies   []string      // of the fresh sessions
	before    []int         // by visitor or fresh session: the counter before the round
}

// begin connects the clients and gives each visitor a session.
func (p pages) begin(ctx context.Context, f fleet) (load, error) {
	p.processes = len(f)
	p.took = time.Hour // not known yet
	var err error
	if p.clients, err = dialCrowd(ctx, f, p.visitors*p.parallel); err != nil {
		return nil, err
	}
	if p.keeper, err = dial(ctx, f.addr(0)); err != nil {
		p.clients.close()
		return nil, err
	}
	defer p.clients.watch(stallAfter)()
	if _, err = p.clients.each(p.warmUp); err != nil {
		p.close()
		return nil, err
	}
	p.views = slices.Collect(slices.Chunk(p.clients, p.parallel))
	for _, v := range p.views {
		v.share(v[0].cookie)
	}
	return &p, nil
}

// warmUp lets a client use its own session, so that connections are open and scripts loaded.
func (p *pages) warmUp(_ int, c *client) error {
	for range 3 {
		if _, err := c.call(http.MethodPost, "/incr"); err != nil {
			return err
		}
	}
	if p.fill == "" {
		return nil
	}
	_, err := c.call(http.MethodPost, p.fill)
	return err
}

func (p *pages) close() {
	p.clients.close()
	p.keeper.close()
}

// prepare makes as many fresh sessions as there will be time for, judging by the last round. Other sessions
// stay.
func (p *pages) prepare(d time.Duration) (err error) {
	defer p.clients.watch(stallAfter)()
	p.cookies = nil
	if p.fresh {
		first := p.clients[0]
		for range min(max(1, int(d/p.took)), 200) {
			first.cookie = ""
			if _, err := first.call(http.MethodPost, "/incr"); err != nil {
				return err
			}
			p.cookies = append(p.cookies, first.cookie)
		}
	}
	p.before, err = p.counters()
	return err
}

// counters returns how many writes are in each session.
func (p *pages) counters() (all []int, err error) {
	ask := func(c *client) {
		n, e := c.call(http.MethodGet, p.counter)
		all, err = append(all, n), cmp.Or(err, e)
	}
	for _, cookie := range p.cookies {
		p.clients[0].cookie = cookie
		ask(p.clients[0])
	}
	if !p.fresh {
		for _, v := range p.views {
			ask(v[0])
		}
	}
	return all, err
}

func (p *pages) run(d time.Duration) (tally, error) {
	defer p.clients.watch(stallAfter)()
	if p.fresh {
		return p.rush()
	}
	tallies := make([]tally, len(p.views))
	errs := make([]error, len(p.views))
	var group sync.WaitGroup
	began := time.Now()
	for i, v := range p.views {
		group.Go(func() {
			for errs[i] == nil && time.Since(began) < d {
				errs[i] = p.open(v, p.before[i]+p.step, &tallies[i])
			}
		})
	}
	group.Wait()
	sum := tally{took: millis(time.Since(began))}
	for _, t := range tallies {
		sum.latencies = append(sum.latencies, t.latencies...)
		sum.pages = append(sum.pages, t.pages...)
		sum.requests += t.requests
		sum.writes += t.writes
	}
	return sum, cmp.Or(errs...)
}

// rush opens one page in each fresh session. The time between pages does not count.
func (p *pages) rush() (t tally, err error) {
	for _, cookie := range p.cookies {
		p.clients.share(cookie)
		held := p.hold(cookie, &t)
		if err := cmp.Or(p.open(p.clients, 0, &t), held()); err != nil {
			return t, err
		}
	}
	for _, took := range t.rounds {
		t.took += took
	}
	p.took = time.Duration(t.took*float64(time.Millisecond)) / time.Duration(len(p.cookies))
	return t, nil
}

// open makes the requests of one page. If there is only one, its response must be the counter after the
// request; first is the counter after the first page.
func (p *pages) open(view crowd, first int, t *tally) error {
	answers := make([]int, len(view))
	latencies := make([]float64, len(view))
	ends := make([]time.Time, len(view))
	began, err := view.each(func(i int, c *client) (err error) {
		sent := time.Now()
		answers[i], err = c.call(p.method, p.target(i))
		ends[i] = time.Now()
		latencies[i] = millis(ends[i].Sub(sent))
		return err
	})
	if err != nil {
		return err
	}
	if want := first + t.writes; len(view) == 1 && answers[0] != want {
		return fmt.Errorf("the counter is %d: it must be %d", answers[0], want)
	}
	t.requests += len(view)
	t.writes += len(view) * p.step
	t.latencies = append(t.latencies, latencies...)
	if len(view) > 1 {
		t.pages = append(t.pages, slices.Max(latencies)/quantile(latencies, 0.5))
	}
	if p.fresh {
		t.rounds = append(t.rounds, millis(slices.MaxFunc(ends, time.Time.Compare).Sub(began)))
	}
	if p.ordered {
		t.unfair = max(t.unfair, unfairness(owners(answers, p.processes), p.processes))
	}
	return nil
}

// hold makes a page wait if p.wait is set, so that all requests of the page wait when the first is served. The page
// begins crowdAfter after the hold. hold returns a function that waits for the end of the hold.
func (p *pages) hold(cookie string, t *tally) (held func() error) {
	if p.wait == 0 {
		return func() error { return nil }
	}
	p.keeper.cookie = cookie
	done := make(chan error, 1)
	go func() {
		_, err := p.keeper.call(http.MethodPost, "/slow?"+p.wait.String())
		done <- err
	}()
	time.Sleep(crowdAfter) // until the keeper has the session
	t.requests++
	t.writes++
	return func() error { return <-done }
}

// check counts the writes that are in the sessions now.
func (p *pages) check(t *tally) error {
	defer p.clients.watch(stallAfter)()
	after, err := p.counters()
	for i := range after {
		t.kept += after[i] - p.before[i]
	}
	return err
}
