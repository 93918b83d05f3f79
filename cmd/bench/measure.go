package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

// A cell is one workload in one number of processes.
type cell struct {
	workload
	n int
}

// key signs the cookies of all processes.
var key = []byte(rand.Text() + rand.Text())

// A result is what was measured in a cell.
type result struct {
	cell
	peers []*outcome // in the order of app.Peers
}

// measure gives all peers their turns. Each other round is in the opposite
// order, since the second one may find the machine warmer, or busier. A peer that
// fails is left out from then on, and its outcome says why.
func measure(ctx context.Context, c config, server *redisServer, w cell, progress io.Writer) (*result, error) {
	if err := server.admin.FlushDB(ctx).Err(); err != nil {
		return nil, fmt.Errorf("emptying Redis: %w", err)
	}
	r := &result{cell: w}
	for _, p := range c.peers {
		if w.peers(p) {
			o := &outcome{peer: p}
			defer o.close()
			o.try(func() error { return o.begin(ctx, c, server, w) })
			r.peers = append(r.peers, o)
		}
	}
	for round := range c.rounds {
		for place := range r.peers {
			o := r.peers[place]
			if round%2 == 1 {
				o = r.peers[len(r.peers)-1-place]
			}
			if o.err == nil && o.spent < c.limit {
				o.try(func() error { return o.play(ctx, c, server, w, round) })
			}
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
		}
	}
	for _, o := range r.peers {
		if o.err != nil {
			fmt.Fprintf(progress, "bench: %s: %s: %v\n", w, o.peer.Name, o.err)
		}
	}
	return r, nil
}

// begin starts the peer's processes, and its clients.
func (o *outcome) begin(ctx context.Context, c config, server *redisServer, w cell) (err error) {
	a := app.Config{Peer: o.peer.Name, Redis: server.addr, Key: key}
	if o.peer.Name == app.Latchkey {
		a.Profile = c.cpuProfile
	}
	if o.fleet, err = startFleet(ctx, a, w.n); err != nil {
		return err
	}
	o.load, err = w.begin(ctx, o.fleet)
	return err
}

// play adds one turn.
func (o *outcome) play(ctx context.Context, c config, server *redisServer, w cell, round int) error {
	if o.load == nil { // it has stood still
		if err := o.begin(ctx, c, server, w); err != nil {
			return err
		}
	}
	d := c.time * time.Duration(max(1, w.times))
	if err := o.load.prepare(d); err != nil {
		return err
	}
	runtime.GC() // nobody pays for what the one before has left
	before, err := o.look(ctx, server)
	if err != nil {
		return err
	}
	began := time.Now()
	t, err := o.load.run(d)
	if err != nil {
		return err
	}
	o.spent += time.Since(began)
	after, err := o.look(ctx, server)
	if err != nil {
		return err
	}
	if err := o.load.check(&t); err != nil {
		return err
	}
	shown := newTurn(t, after.redis.since(before.redis), before.app, after.app)
	shown.number = round
	o.turns = append(o.turns, shown)
	if o.peer.Locks && t.kept < t.writes {
		return fmt.Errorf("lost %d of %d answered writes", t.writes-t.kept, t.writes)
	}
	return nil
}
