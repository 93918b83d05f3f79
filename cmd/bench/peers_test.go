package main

import (
	"testing"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

// TestPeersAnswerAlike makes sure that the peers do the same work.
func TestPeersAnswerAlike(t *testing.T) {
	server, err := startRedis(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer server.close()
	for _, p := range app.Peers() {
		t.Run(p.Name, func(t *testing.T) {
			f, err := startFleet(t.Context(), app.Config{Peer: p.Name, Redis: server.addr, Key: make([]byte, 32)}, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer f.close()
			c, err := dial(t.Context(), f.addr(0))
			if err != nil {
				t.Fatal(err)
			}
			defer c.close()
			for _, step := range []struct {
				method, target string
				want           int
			}{
				{"POST", "/incr", 1},
				{"POST", "/slow?1ms", 2},
				{"POST", "/set?k", 1},
				{"GET", "/count", 2},
				{"GET", "/size", 2},
				{"POST", "/fill", app.BigValues},
				{"POST", "/incr", 3},
				{"GET", "/size", 2 + app.BigValues},
			} {
				if n, err := c.call(step.method, step.target); n != step.want || err != nil {
					t.Errorf("%s %s: %d, error %v: it must be %d", step.method, step.target, n, err, step.want)
				}
			}
			if s, err := f.stats(t.Context()); err != nil || s.Slow != 1 || s.Slept == 0 {
				t.Errorf("the stats are %+v, error %v", s, err)
			}
		})
	}
}
