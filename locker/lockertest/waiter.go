package lockertest

import (
	"context"
	"sync"

	"github.com/a2139e8d/latchkey/locker"
)

// A waiter is a call of Lock that runs during the check.
type waiter struct {
	*check
	cancel context.CancelCauseFunc
	waits  chan struct{} // closed when Lock begins to wait
	done   chan struct{} // closed when Lock has returned
	lease  *locker.Lease
	err    error
}

func (c *check) begin(p *Process, key string) *waiter {
	ctx, cancel := context.WithCancelCause(c.ctx)
	w := &waiter{check: c, cancel: cancel, waits: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.lease, w.err = p.Lock(&watched{Context: ctx, waits: w.waits}, key)
	}()
	c.Cleanup(func() {
		cancel(nil)
		<-w.done
	})
	return w
}

// inLine begins to lock a key that p has, or waits for. When inLine returns, the waiter stands in line.
func (c *check) inLine(p *Process, key string) *waiter {
	c.Helper()
	w := c.begin(p, key)
	c.await("a caller begins to wait", w.waits)
	return w
}

// atRedis begins to lock a key that another process has. When atRedis returns, the waiter has found the key
// locked, as far as can be seen.
func (c *check) atRedis(p *Process, key string) *waiter {
	c.Helper()
	// A try of a Redlock is a Take and a Release on each node.
	enough := p.Exchanges() + 1
	if c.kind.SeesRelease {
		enough += 2 * c.kind.Nodes
	}
	w := c.begin(p, key)
	c.eventually("a try at Redis", func() bool { return p.Exchanges() >= enough })
	return w
}

// waitsFor checks that the waiter has no lease yet, and gets one when l is released.
func (w *waiter) waitsFor(l *locker.Lease) {
	w.Helper()
	select {
	case <-w.done:
		w.Fatalf("Lock returned while another caller has the lock: %v", w.err)
	default:
	}
	w.unlock(l)
	w.unlock(w.wins())
	w.nothingLeft()
}

// wins waits for the waiter's lease.
func (w *waiter) wins() *locker.Lease {
	w.Helper()
	<-w.done // closed at the end of w.ctx, at the latest
	if w.err != nil {
		w.Fatal(w.err)
	}
	return w.lease
}

// fails waits for the waiter's error.
func (w *waiter) fails(want error) {
	w.Helper()
	<-w.done
	w.wants("Lock", w.err, want)
}

// A watched context reports when a caller begins to wait for its end. In a line, the caller has taken its
// place by then.
type watched struct {
	context.Context
	once  sync.Once
	waits chan struct{}
}

func (ctx *watched) Done() <-chan struct{} {
	ctx.once.Do(func() { close(ctx.waits) })
	return ctx.Context.Done()
}
