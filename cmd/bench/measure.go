package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

// A result is what one workload has shown.
type result struct {
	workload
	peers []outcome // in the order of newPeers
}

// An outcome is what one peer did under one workload.
type outcome struct {
	peer     *peer
	figures  []float64 // one a round
	requests int
	kept     []int
	cost     cost
}

// measure runs one workload at all peers, which take turns. Each begins every
// other round, since the second one may find the machine warmer, or busier.
func measure(ctx context.Context, c config, server *redisServer, w workload, peers []*peer) (_ result, err error) {
	r := result{workload: w}
	var loads []load
	defer func() {
		for _, l := range loads {
			l.close()
		}
	}()
	for _, p := range peers {
		l, err := w.begin(ctx, p)
		if err != nil {
			return r, fmt.Errorf("%s: %w", p.name, err)
		}
		loads = append(loads, l)
		r.peers = append(r.peers, outcome{peer: p})
		if _, err := l.round(c.time); err != nil { // the warm-up
			return r, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	for round := range c.rounds {
		for turn := range peers {
			i := turn
			if round%2 == 1 {
				i = len(peers) - 1 - turn
			}
			if err := r.peers[i].take(ctx, c, server, loads[i]); err != nil {
				return r, fmt.Errorf("%s: %w", peers[i].name, err)
			}
		}
	}
	for i, l := range loads {
		if e := l.verify(); e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", peers[i].name, e))
		}
	}
	return r, err
}

// take adds one round.
func (o *outcome) take(ctx context.Context, c config, server *redisServer, l load) error {
	runtime.GC() // nobody pays for what the one before has left
	before, err := costs(ctx, server)
	if err != nil {
		return err
	}
	s, err := l.round(c.time)
	if err != nil {
		return err
	}
	after, err := costs(ctx, server)
	if err != nil {
		return err
	}
	o.figures = append(o.figures, s.figure)
	o.requests += s.requests
	o.kept = append(o.kept, s.kept...)
	o.cost.add(before, after)
	return nil
}
