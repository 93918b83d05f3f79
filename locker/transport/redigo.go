package transport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
)

// A Redigo is a [Client] that shares one connection among all exchanges: redigo
// lets one goroutine send while another receives. To send and to receive cost both
// sides more than the work that Redis does in between, so what comes at the same
// time is sent together; and nobody waits for the replies of others before its own
// commands are sent.
//
// A second connection is made only while the first is stuck: while its oldest
// exchange has been waiting for an eighth of the timeout. A connection that was not
// used for a minute is closed.
//
// When a connection breaks, when Redis does not answer, or answers that it is a
// replica, all connections are given up. After a failover the address usually
// leads to the new master, but open connections stay with the old one.
type Redigo struct {
	pool    *redis.Pool
	timeout time.Duration

	mu     sync.Mutex // guards what follows, all links and all their calls
	links  []*link    // that take new calls, at most two
	closed bool
}

const (
	maxLinks = 2
	maxIdle  = time.Minute
)

var (
	errClosed  = errors.New("the client is closed")
	errReset   = errors.New("the connection was given up")
	errDemoted = errors.New("the server is a replica")
	errNoPool  = errors.New("the pool is nil")
	errTimeout = context.DeadlineExceeded
)

// NewRedigo returns a client that makes connections as pool does, but keeps them
// itself: it takes none from the pool. Each exchange takes at most timeout. The
// client should be closed when it is no longer needed.
func NewRedigo(pool *redis.Pool, timeout time.Duration) *Redigo {
	return &Redigo{pool: pool, timeout: timeout}
}

// Do is described in [Client].
func (c *Redigo) Do(ctx context.Context, _ string, commands ...Command) ([]any, error) {
	for _, command := range commands {
		if !command.valid() {
			return nil, Refused(errors.New("a command has no name"))
		}
	}
	if err := ctx.Err(); err != nil || len(commands) == 0 {
		return nil, refusedIf(err)
	}
	now := time.Now()
	x := &call{commands: commands, deadline: now.Add(c.timeout), cancelled: ctx.Done()}
	if end, ok := ctx.Deadline(); ok && end.Before(x.deadline) {
		x.hurry(end)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.enqueue(x, now); x.hurried {
		x.link.mind()
	}
	for !x.done {
		if !x.hurried {
			x.link.work(x)
		}
		if !x.done {
			c.wait(ctx, x)
		}
	}
	if x.link != nil {
		x.link.mind()
	}
	return x.replies, x.err
}

func refusedIf(err error) error {
	if err == nil {
		return nil
	}
	return Refused(err)
}

// enqueue gives x to a link, or refuses it. It is called with mu held, as all
// that is not exported.
func (c *Redigo) enqueue(x *call, now time.Time) {
	switch {
	case c.pool == nil:
		x.finish(Refused(errNoPool))
	case c.closed:
		x.finish(Refused(errClosed))
	default:
		c.pick(now).add(x, now)
	}
}

// pick returns the link for a new call: the first that is not stuck.
func (c *Redigo) pick(now time.Time) *link {
	for _, l := range c.links {
		if !l.stuck(now) {
			return l
		}
	}
	if len(c.links) == maxLinks {
		return c.links[maxLinks-1]
	}
	l := newLink(c, now)
	c.links = append(c.links, l)
	return l
}

// wait waits until x is done, or should work, or leaves because its time is over.
// It lets go of mu meanwhile.
func (c *Redigo) wait(ctx context.Context, x *call) {
	var end <-chan time.Time
	if x.hurried {
		timer := time.NewTimer(time.Until(x.leaves))
		defer timer.Stop()
		end = timer.C
	}
	if x.wake == nil {
		x.wake = make(chan struct{}, 1)
	}
	x.waiting = true
	c.mu.Unlock()
	var why error
	select {
	case <-x.wake:
	case <-x.cancelled:
		why = ctx.Err()
	case <-end:
		why = context.DeadlineExceeded
	}
	c.mu.Lock()
	x.waiting = false
	if why != nil && !x.done {
		x.cancelled = nil
		x.link.leave(x, why)
	}
}

// Close gives up the connections. Exchanges that were sent are finished, all
// others are refused.
func (c *Redigo) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.retire(errClosed)
	return nil
}

// retire makes all links end when they have no more calls, and takes no new ones.
func (c *Redigo) retire(why error) {
	links := c.links
	c.links = nil
	for _, l := range links {
		l.retire(why)
	}
}

// Reset breaks all connections, at once; see [Resetter].
func (c *Redigo) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range slices.Clone(c.links) {
		l.fail(errReset)
	}
}

// dial makes a connection as the pool does. If the pool's function panics, that is
// an error, since it may run in a goroutine of ours.
func (c *Redigo) dial(ctx context.Context) (conn redis.Conn, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("a panic: %v", r)
		}
		if err != nil {
			err = fmt.Errorf("no connection: %w", err)
		}
	}()
	switch {
	case c.pool == nil:
		return nil, errNoPool
	case c.pool.DialContext != nil:
		return c.pool.DialContext(ctx)
	case c.pool.Dial != nil:
		return c.pool.Dial()
	}
	return nil, errors.New("the pool cannot dial")
}
