package main

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

// TestFleet makes sure that no process is left behind.
func TestFleet(t *testing.T) {
	server := started(t)
	for _, tt := range []struct {
		name        string
		interrupted bool
	}{{"closed", false}, {"interrupted", true}} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			f, err := startFleet(ctx, "", app.Config{Peer: app.SCS, Redis: server.addr}, 2)
			if err != nil {
				t.Fatal(err)
			}
			if f.addr(0) == f.addr(1) || f.addr(0) != f.addr(2) {
				t.Errorf("clients are not spread evenly: %s, %s, %s", f.addr(0), f.addr(1), f.addr(2))
			}
			if s, err := f.stats(ctx); err != nil || s.CPU == 0 || s.Mallocs == 0 {
				t.Errorf("the stats are %+v, error %v", s, err)
			}
			if tt.interrupted {
				cancel()
			}
			f.close()
			for _, p := range f {
				// An interrupted process is killed, or notices before that that its parent has gone.
				if state := p.cmd.ProcessState; state == nil || !state.Success() && !tt.interrupted {
					t.Errorf("the process has ended as %v", state)
				}
			}
		})
	}
}

// TestPeersAnswerAlike makes sure that the peers do the same work.
func TestPeersAnswerAlike(t *testing.T) {
	server := started(t)
	for _, p := range app.Peers() {
		t.Run(p.Name, func(t *testing.T) {
			f, err := startFleet(t.Context(), "", app.Config{Peer: p.Name, Redis: server.addr, Key: []byte(strings.Repeat("key ", 8))}, 1)
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
				{"POST", "/login", 5},
				{"POST", "/fill?40", 40},
				{"POST", "/incr", 3},
				{"GET", "/size", 2 + 5 + 40},
			} {
				if n, err := c.call(step.method, step.target); n != step.want || err != nil {
					t.Errorf("%s %s: %d, error %v: it must be %d", step.method, step.target, n, err, step.want)
				}
			}
			if _, err := c.call("GET", "/other"); err == nil || !strings.Contains(err.Error(), "404 Not Found") {
				t.Errorf("a path that does not exist: the error is %v", err)
			}
			if n := c.answers.Load(); n != 9 {
				t.Errorf("%d answers: it must be 9", n)
			}
		})
	}
}

// TestStall has a server that never responds.
func TestStall(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	c, err := dial(t.Context(), listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	stop := crowd{c}.watch(50 * time.Millisecond)
	if _, err := c.call("GET", "/"); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the error is %v: it must be a timeout", err)
	}
	stop()
}
