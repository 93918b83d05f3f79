package main

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"time"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

// A cell is one workload with one number of processes.
type cell struct {
	workload
	n int
}

func (c cell) String() string {
	if c.n == 1 {
		return c.name + ", 1 process"
	}
	return fmt.Sprintf("%s, %d processes", c.name, c.n)
}

// A result has the measurements of a cell.
type result struct {
	cell
	peers []*outcome
}

// A contender is a peer, built with this Latchkey or with another one.
type contender struct {
	app.Peer
	binary string // what its processes run; empty: this program
}

// newResult returns a result without samples.
func newResult(c config, w cell) *result {
	r := &result{cell: w}
	for _, p := range c.contenders {
		if w.peers(p.Peer) {
			r.peers = append(r.peers, &outcome{peer: p})
		}
	}
	return r
}

// measure lets the contenders take part in each round, or in every third. The order of each round is random: a
// contender that comes twice in a row has an advantage, since its memory is still in the caches. A contender that fails is
// left out from then on, and its outcome says why.
func measure(ctx context.Context, c config, server *redisServer, w cell, progress io.Writer) (*result, error) {
	if err := server.admin.FlushDB(ctx).Err(); err != nil {
		return nil, fmt.Errorf("emptying Redis: %w", err)
	}
	e := environment{cell: w, config: c, server: server, addr: server.addr}
	if w.delay > 0 {
		d, err := startDelayer(ctx, server.addr, w.delay)
		if err != nil {
			return nil, fmt.Errorf("delaying Redis: %w", err)
		}
		defer d.close()
		e.addr = d.addr
	}
	r := newResult(c, w)
	for _, o := range r.peers {
		defer o.close()
	}
	for round := range c.rounds {
		if c.restarts() && round%fresh == 0 {
			for _, o := range r.peers {
				o.close()
			}
		}
		for _, place := range rand.Perm(len(r.peers)) {
			o := r.peers[place]
			if o.takesPart(round, c.limit) {
				o.try(func() error { return o.play(ctx, e, round) })
			}
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
		}
	}
	r.complain(progress)
	return r, nil
}

// complain prints which contenders have failed.
func (r *result) complain(progress io.Writer) {
	for _, o := range r.peers {
		if o.err != nil {
			fmt.Fprintf(progress, "bench: %s: %s: %v\n", r.cell, o.peer.Title, o.err)
		}
	}
}

// An environment is shared by all contenders of a cell.
type environment struct {
	cell
	config config
	server *redisServer
	addr   string // of Redis, as the application reaches it
}

// duration is that of a round.
func (e environment) duration() time.Duration { return e.config.time * time.Duration(max(1, e.times)) }

// key signs the cookies of all processes.
var key = []byte(crand.Text() + crand.Text())

// An outcome has the samples of one contender in a cell.
type outcome struct {
	peer    contender
	samples []sample
	stalled int   // how many times
	err     error // why there are no more samples

	fleet fleet
	load  load // nil: not begun
	spent time.Duration
}

// takesPart leaves out a contender that would take too long, unless it has a limit.
func (o *outcome) takesPart(round int, limit time.Duration) bool {
	return o.err == nil && (regular(o.peer.Peer) || round%seldom == 0 && o.spent < limit)
}

// chances is the number of stalls after which a contender is left out.
const chances = 2

// try calls do. A contender that stalls is restarted, as its operator would do.
func (o *outcome) try(do func() error) {
	err := do()
	switch {
	case err == nil:
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		o.close()
		if o.stalled++; o.stalled == chances {
			o.err = fmt.Errorf("stalled %d times", chances)
		}
	default:
		o.err = err
	}
}

// close ends the clients and the processes.
func (o *outcome) close() {
	if o.load != nil {
		o.load.close()
		o.load = nil
	}
	o.fleet.close()
	o.fleet = nil
}

// begin starts the processes and the clients.
func (o *outcome) begin(ctx context.Context, e environment) (err error) {
	a := app.Config{Peer: o.peer.Name, Redis: e.addr, Key: key, Bare: e.bare}
	if o.peer.Name == app.Latchkey && o.peer.binary == "" {
		a.Profile = e.config.cpuProfile
	}
	if o.fleet, err = startFleet(ctx, o.peer.binary, a, e.n); err != nil {
		return err
	}
	if o.load, err = e.begin(ctx, o.fleet); err != nil || !e.config.restarts() {
		return err
	}
	// This round does not count, since a new process is slow at first. Without it, one round of a rush in three would be a
	// single page: only a round shows how many pages there is time for.
	if err := o.load.prepare(e.duration()); err != nil {
		return err
	}
	_, err = o.load.run(e.duration())
	return err
}

// play adds one sample.
func (o *outcome) play(ctx context.Context, e environment, round int) error {
	if o.load == nil {
		if err := o.begin(ctx, e); err != nil {
			return err
		}
	}
	d := e.duration()
	if err := o.load.prepare(d); err != nil {
		return err
	}
	runtime.GC() // no contender pays for the garbage of the one before
	before, err := o.look(ctx, e.server)
	if err != nil {
		return err
	}
	began := time.Now()
	t, err := o.load.run(d)
	if err != nil {
		return err
	}
	o.spent += time.Since(began)
	after, err := o.look(ctx, e.server)
	if err != nil {
		return err
	}
	if t.requests == 0 {
		return fmt.Errorf("no request was made within %v", d)
	}
	if err := o.load.check(&t); err != nil {
		return err
	}
	s := newSample(round, t, before, after)
	if o.peer.Name == app.Floor { // it sends nothing: the reads were on idle connections of others
		s.redisCPU, s.roundTrips, s.commands = 0, 0, nil
	}
	o.samples = append(o.samples, s)
	if o.peer.Locks && t.kept < t.writes {
		return fmt.Errorf("lost %d of %d answered writes", t.writes-t.kept, t.writes)
	}
	return nil
}

// A look has the costs up to some time.
type look struct {
	app   app.Stats
	redis cost
}

func (o *outcome) look(ctx context.Context, server *redisServer) (l look, err error) {
	if l.app, err = o.fleet.stats(ctx); err != nil {
		return l, err
	}
	l.redis, err = server.cost(ctx)
	return l, err
}
