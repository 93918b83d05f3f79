package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// A workload is a kind of load.
type workload struct {
	name  string
	about string
	unit  string
	begin func(context.Context, *peer) (load, error)
}

// A load is a workload under way at one peer.
type load interface {
	// round loads the peer for about d.
	round(d time.Duration) (sample, error)
	// verify makes sure that every answered request left its trace.
	verify() error
	close()
}

// A sample is what came of one round.
type sample struct {
	figure   float64 // in the workload's unit
	requests int
	kept     []int // hot only: how many writes of each crowd were kept
}

const (
	visitors = 64  // clients with a session each
	rush     = 100 // concurrent writes to one session
)

func workloads() []workload {
	return []workload{{
		name: "spread", unit: "req/s",
		about: fmt.Sprintf("%d clients, each with a session of its own, add 1 to a counter in it, over and over", visitors),
		begin: func(ctx context.Context, p *peer) (load, error) {
			return beginLoop(ctx, p, http.MethodPost, "/incr", 1)
		},
	}, {
		name: "hot", unit: "ms",
		about: fmt.Sprintf("%d concurrent writes of distinct keys to one fresh session: the time until all are answered", rush),
		begin: beginHot,
	}, {
		name: "read", unit: "req/s",
		about: fmt.Sprintf("%d clients, each with a session of its own, read a counter in it, over and over", visitors),
		begin: func(ctx context.Context, p *peer) (load, error) {
			return beginLoop(ctx, p, http.MethodGet, "/count", 0)
		},
	}}
}

// A loop is clients that make their next request when the last is answered.
type loop struct {
	crowd
	method, target string
	step           int   // what each request adds to the counter
	counters       []int // by client: what its counter must be
}

func beginLoop(ctx context.Context, p *peer, method, target string, step int) (load, error) {
	clients, err := dialCrowd(ctx, p.addr, visitors)
	if err != nil {
		return nil, err
	}
	l := &loop{crowd: clients, method: method, target: target, step: step, counters: make([]int, visitors)}
	err = l.all(func(i int, c *client) error {
		l.counters[i] = 1
		return l.expect(i, c, http.MethodPost, "/incr")
	})
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *loop) round(d time.Duration) (sample, error) {
	counts := make([]int, len(l.crowd))
	began := time.Now()
	err := l.all(func(i int, c *client) error {
		for time.Since(began) < d {
			l.counters[i] += l.step
			if err := l.expect(i, c, l.method, l.target); err != nil {
				return err
			}
			counts[i]++
		}
		return nil
	})
	took := time.Since(began)
	var s sample
	for _, n := range counts {
		s.requests += n
	}
	s.figure = float64(s.requests) / took.Seconds()
	return s, err
}

func (l *loop) verify() error {
	return l.all(func(i int, c *client) error { return l.expect(i, c, http.MethodGet, "/count") })
}

// expect makes a request whose answer must be the client's counter.
func (l *loop) expect(i int, c *client, method, target string) error {
	n, err := c.call(method, target)
	if err == nil && n != l.counters[i] {
		err = fmt.Errorf("the counter of client %d is %d: it must be %d", i, n, l.counters[i])
	}
	return err
}

// A hot load is a crowd that writes to one session.
type hot struct {
	crowd
	locks bool
	lost  int
}

func beginHot(ctx context.Context, p *peer) (load, error) {
	clients, err := dialCrowd(ctx, p.addr, rush)
	if err != nil {
		return nil, err
	}
	return &hot{crowd: clients, locks: p.locks}, nil
}

// round sends the crowd as often as fits. Its figure is the median time, since
// one crowd takes only some milliseconds.
func (h *hot) round(d time.Duration) (sample, error) {
	var s sample
	var times []float64
	for began := time.Now(); time.Since(began) < d; {
		took, kept, err := h.once()
		if err != nil {
			return s, err
		}
		times = append(times, float64(took)/float64(time.Millisecond))
		s.kept = append(s.kept, kept)
		s.requests += len(h.crowd) + 2 // the first and the last of once
		h.lost += len(h.crowd) - kept
	}
	s.figure = median(times)
	return s, nil
}

// once makes a session, sends the crowd, and counts what was kept.
func (h *hot) once() (took time.Duration, kept int, err error) {
	first := h.crowd[0]
	first.cookie = ""
	if _, err := first.call(http.MethodPost, "/incr"); err != nil {
		return 0, 0, err
	}
	for _, c := range h.crowd {
		c.cookie = first.cookie
	}
	began := time.Now()
	err = h.all(func(i int, c *client) error {
		_, err := c.call(http.MethodPost, "/set?k"+strconv.Itoa(i))
		return err
	})
	took = time.Since(began)
	if err != nil {
		return 0, 0, err
	}
	size, err := first.call(http.MethodGet, "/size")
	return took, size - 1, err // without the counter
}

func (h *hot) verify() error {
	if h.locks && h.lost > 0 {
		return fmt.Errorf("%d answered writes were lost", h.lost)
	}
	return nil
}
