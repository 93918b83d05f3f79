package main

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Pageviews are visitors who open page after page. Each page fires some requests
// at once, which write to the visitor's session.
type pageviews struct {
	crowd          // of each visitor some clients in a row
	views  []crowd // the same, by visitor
	before []int   // by visitor: the counter before the turn
}

const (
	pageVisitors = 16
	pageRequests = 8
)

func beginPage(ctx context.Context, f *fleet) (load, error) {
	clients, err := dialCrowd(ctx, f, pageVisitors*pageRequests)
	if err != nil {
		return nil, err
	}
	if err := clients.warmUp(); err != nil {
		clients.close()
		return nil, err
	}
	p := &pageviews{crowd: clients, views: slices.Collect(slices.Chunk(clients, pageRequests))}
	for _, v := range p.views {
		v.share()
	}
	return p, nil
}

func (p *pageviews) prepare(time.Duration) (err error) {
	p.before, err = p.counters()
	return err
}

// run lets each visitor open the next page when the last one is complete.
func (p *pageviews) run(d time.Duration) (tally, error) {
	var (
		group  sync.WaitGroup
		mu     sync.Mutex // guards what follows
		t      tally
		failed error
	)
	defer p.watch(stillness)()
	began := time.Now()
	for _, v := range p.views {
		group.Go(func() {
			for time.Since(began) < d {
				latencies, err := v.open()
				mu.Lock()
				t.latencies = append(t.latencies, latencies...)
				t.pages = append(t.pages, slices.Max(latencies)/quantile(latencies, 0.5))
				if err != nil {
					failed = err
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	group.Wait()
	t.took = millis(time.Since(began))
	t.requests = len(t.latencies)
	t.writes = t.requests
	return t, failed
}

// open makes the requests of one page.
func (c crowd) open() ([]float64, error) {
	latencies := make([]float64, len(c))
	_, err := c.each(func(i int, one *client) error {
		sent := time.Now()
		_, err := one.call(http.MethodPost, "/incr")
		latencies[i] = millis(time.Since(sent))
		return err
	})
	return latencies, err
}

func (p *pageviews) check(t *tally) error {
	after, err := p.counters()
	for i := range after {
		t.kept += after[i] - p.before[i]
	}
	return err
}

func (p *pageviews) counters() ([]int, error) {
	counters := make([]int, len(p.views))
	var err error
	for i, v := range p.views {
		if counters[i], err = v[0].call(http.MethodGet, "/count"); err != nil {
			return nil, err
		}
	}
	return counters, nil
}
