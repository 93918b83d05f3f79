package world

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"syscall"
	"time"

	"github.com/a2139e8d/latchkey/internal/simulation/plan"
)

// at arranges for f to be called at a time, or a few nanoseconds later: no two events have the same time.
// The caller holds mu; f is called with mu held.
func (w *World) at(when time.Duration, f func()) {
	now := w.now()
	when = max(when, now+1)
	for w.taken[when] {
		when++
	}
	w.taken[when] = true
	time.AfterFunc(when-now, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.taken, when)
		f()
	})
}

// now is the time since the run began.
func (w *World) now() time.Duration { return time.Since(w.began) }

// travel returns how long a message travels on a connection.
func (c *conn) travel() time.Duration {
	latency := c.world.plan.Options.Latency
	return latency + time.Duration(c.rand.Int64N(int64(latency)))
}

// during calls f for each fault of a kind that lasts now for this connection.
func (c *conn) during(kind plan.Kind, f func(plan.Fault)) {
	now := c.world.now()
	for _, fault := range c.world.plan.Faults {
		if fault.Kind == kind && fault.Hits(c.process.number, now) {
			f(fault)
		}
	}
}

// struck reports whether a fault of a kind hits a message, and returns its delay.
func (c *conn) struck(kind plan.Kind) (delay time.Duration, hit bool) {
	c.during(kind, func(f plan.Fault) {
		if c.rand.Float64() < f.Share {
			hit = true
			delay = max(delay, time.Duration(c.rand.Int64N(max(1, int64(f.Delay)))))
		}
	})
	return delay, hit
}

// unreachable returns until when a process is cut off; 0: it is not.
func (p *process) unreachable() (until time.Duration) {
	now := p.world.now()
	for _, f := range p.world.plan.Faults {
		if f.Kind == plan.Partition && f.Hits(p.number, now) {
			until = max(until, f.Until())
		}
	}
	return until
}

var errRefused = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}

// dial connects a process to Redis.
func (p *process) dial(ctx context.Context) (net.Conn, error) {
	w := p.world
	w.mu.Lock()
	p.dialled++
	c := &conn{world: w, process: p, number: p.dialled, wake: make(chan struct{}, 1),
		rand: rand.New(rand.NewPCG(w.plan.Seed, uint64(p.number)<<48|uint64(p.life)<<32|uint64(p.dialled)))}
	delay := 2 * c.travel()
	if until := p.unreachable(); until > 0 {
		delay += until - w.now()
	}
	arrived := make(chan error, 1)
	w.at(w.now()+delay, func() { arrived <- w.accept(c) })
	w.mu.Unlock()
	select {
	case err := <-arrived:
		if err != nil {
			return nil, err
		}
		return c, nil
	case <-ctx.Done():
		_ = c.Close()
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: timeoutOr(ctx.Err())}
	}
}

func timeoutOr(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return errTimeout
	}
	return err
}

// accept is Redis's side of a dial. The caller holds mu.
func (w *World) accept(c *conn) error {
	if c.closed || c.process.dead || w.down {
		return errRefused
	}
	c.server = w.redis.Connect(c.push)
	w.conns = append(w.conns, c)
	return nil
}
