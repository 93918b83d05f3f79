package main

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// A loop is clients with a session each, that make their next request when the
// last is answered.
type loop struct {
	crowd
	method, target string
	step           int   // what each request adds to the counter
	counters       []int // by client: what its counter must be
}

// visitors is how many clients a loop has.
const visitors = 64

func beginSpread(ctx context.Context, f *fleet) (load, error) {
	return beginLoop(ctx, f, &loop{method: http.MethodPost, target: "/incr", step: 1})
}

func beginRead(ctx context.Context, f *fleet) (load, error) {
	return beginLoop(ctx, f, &loop{method: http.MethodGet, target: "/count"})
}

// beginBig is as beginSpread, but with large sessions.
func beginBig(ctx context.Context, f *fleet) (load, error) {
	l := &loop{method: http.MethodPost, target: "/incr", step: 1}
	if _, err := beginLoop(ctx, f, l); err != nil {
		return nil, err
	}
	_, err := l.all(func(_ int, c *client) error {
		_, err := c.call(http.MethodPost, "/fill")
		return err
	})
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func beginLoop(ctx context.Context, f *fleet, l *loop) (load, error) {
	var err error
	if l.crowd, err = dialCrowd(ctx, f, visitors); err != nil {
		return nil, err
	}
	if err := l.warmUp(); err != nil {
		l.close()
		return nil, err
	}
	l.counters = make([]int, visitors)
	for i := range l.counters {
		l.counters[i] = warmUps
	}
	return l, nil
}

func (l *loop) prepare(time.Duration) error { return nil }

func (l *loop) run(d time.Duration) (tally, error) {
	latencies := make([][]float64, len(l.crowd))
	began, err := l.all(func(i int, c *client) error {
		for end := time.Now().Add(d); time.Now().Before(end); {
			l.counters[i] += l.step
			sent := time.Now()
			n, err := c.call(l.method, l.target)
			if err != nil {
				return err
			}
			if n != l.counters[i] {
				return fmt.Errorf("the counter of client %d is %d: it must be %d", i, n, l.counters[i])
			}
			latencies[i] = append(latencies[i], millis(time.Since(sent)))
		}
		return nil
	})
	t := tally{took: millis(time.Since(began))}
	for _, some := range latencies {
		t.latencies = append(t.latencies, some...)
	}
	t.requests = len(t.latencies)
	return t, err
}

// check has nothing to add: each answer was checked.
func (l *loop) check(t *tally) error {
	t.writes = t.requests * l.step
	t.kept = t.writes
	return nil
}
