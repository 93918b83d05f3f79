package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/a2139e8d/latchkey/locker"
)

// The experiment asks how long to sleep between two tries for a lock that is
// held. It loads a page like `ab -n 1000 -c 100`.
const (
	experimentRequests = 1000
	experimentWorkers  = 100
)

// A trial is what one way has shown.
type trial struct {
	way    way
	rounds []figures
}

// figures are those of one round. Times are in ms.
type figures struct {
	take, takeP99, hold, release, releaseP99 float64

	perSecond  float64 // requests served
	roundTrips float64 // to Redis, for each request served
	redisCPU   float64 // ms, for each request served
	gaveUp     float64
}

// median returns the median of one figure over the rounds.
func (t trial) median(of func(figures) float64) float64 {
	return median(t.all(of))
}

func (t trial) all(of func(figures) float64) []float64 {
	var numbers []float64
	for _, f := range t.rounds {
		numbers = append(numbers, of(f))
	}
	return numbers
}

// experiment tries all ways in turn, in each round in the other order.
func experiment(ctx context.Context, c config, server *redisServer, progress io.Writer) (_ []trial, err error) {
	p, err := newPage(ctx, server.addr, experimentWorkers, c.hold)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.pool.Close()) }()

	var trials []trial
	for _, w := range ways() {
		trials = append(trials, trial{way: w})
	}
	newLocker := p.newLocker(c.lock)
	if _, err := p.round(ctx, server, ways()[len(trials)-1], newLocker); err != nil { // the warm-up
		return nil, err
	}
	for round := range c.rounds {
		for turn := range trials {
			t := &trials[turn]
			if round%2 == 1 {
				t = &trials[len(trials)-1-turn]
			}
			f, err := p.round(ctx, server, t.way, newLocker)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.way.name, err)
			}
			fmt.Fprintf(progress, "bench: round %d of %d: %s: %.0f requests/s\n", round+1, c.rounds, t.way.name, f.perSecond)
			t.rounds = append(t.rounds, f)
		}
	}
	return trials, nil
}

// round makes all requests, waiting in one way.
func (p *page) round(ctx context.Context, server *redisServer, w way, newLocker func(locker.Options) locker.Locker) (figures, error) {
	if err := p.reset(ctx, server); err != nil {
		return figures{}, err
	}
	runtime.GC() // nobody pays for what the one before has left
	before, err := costs(ctx, server)
	if err != nil {
		return figures{}, err
	}
	began := time.Now()
	visits, err := p.load(ctx, w.takers(experimentWorkers, newLocker), experimentRequests)
	took := time.Since(began)
	if err != nil {
		return figures{}, err
	}
	after, err := costs(ctx, server)
	if err != nil {
		return figures{}, err
	}
	f, served := summary(visits, took, after.since(before))
	if served == 0 {
		return f, errors.New("no request got the lock")
	}
	return f, p.verify(ctx, server, served)
}

// load makes the requests, one at a time for each taker.
func (p *page) load(ctx context.Context, takers []taker, requests int) ([]visit, error) {
	var (
		group  sync.WaitGroup
		next   atomic.Int64
		mu     sync.Mutex // guards what follows
		visits []visit
		failed error
	)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for _, take := range takers {
		group.Go(func() {
			for next.Add(1) <= int64(requests) {
				v, err := p.request(ctx, take)
				mu.Lock()
				visits = append(visits, v)
				if err != nil && failed == nil {
					failed = err
					stop() // nothing is worth measuring any more
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return visits, failed
}

// summary also returns the number of requests that got the lock. The others count
// as long waits. What they cost Redis is shared among those that were served.
func summary(visits []visit, took time.Duration, spent cost) (f figures, served int) {
	var take, hold, release []float64
	for _, v := range visits {
		take = append(take, v.take)
		if v.gaveUp {
			continue
		}
		hold = append(hold, v.hold)
		release = append(release, v.release)
	}
	served = len(hold)
	if served == 0 {
		return f, 0
	}
	each := float64(served)
	return figures{
		take: quantile(take, 0.5), takeP99: quantile(take, 0.99),
		hold:    quantile(hold, 0.5),
		release: quantile(release, 0.5), releaseP99: quantile(release, 0.99),
		perSecond: each / took.Seconds(),
		// A script is one round trip, whatever it calls. The page makes two.
		roundTrips: float64(spent.commands["evalsha"]+spent.commands["eval"])/each + 2,
		redisCPU:   millis(spent.redis) / each,
		gaveUp:     float64(len(visits) - served),
	}, served
}
