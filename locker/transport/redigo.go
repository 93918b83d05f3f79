package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
)

// A Redigo is a [Client] and a [Resetter] over redigo. It shares one connection among all round trips. Sending and
// receiving cost both sides more than the work that Redis does in between. So commands that come at the same time
// are sent together. But no command waits for replies to other commands before it is sent.
//
// Redigo makes a second connection only while the first is stuck: while its oldest round trip has been waiting for
// an eighth of the timeout. If Redis then replies on the second connection, but stays silent on the first for
// another eighth, Redigo gives the first up, so that its round trips can be repeated in time.
//
// Redigo gives all connections up if one breaks, if Redis does not reply, or if Redis is a replica. After a
// failover the address usually leads to the new master, but an open connection stays with the old one. If the
// address still leads to a replica, it is dialled again after an eighth of the timeout. A connection that was not
// used for a minute is closed.
type Redigo struct {
	// Address is where the pool dials, and Database the number that it selects there, for a [Route]. They may be set before
	// the client is used.
	Address, Database string

	pool    *redis.Pool
	timeout time.Duration
	stuck   time.Duration // a link is stuck if its first call has waited for so long
	spare   sync.Pool     // of calls

	mu     sync.Mutex // guards the rest, all links and all their calls
	links  []*link    // all that take new calls
	gaveUp time.Time  // when a dead link was given up last
	left   time.Time  // when links to a replica were given up last
	closed bool
}

const (
	maxLinks = 2
	maxIdle  = time.Minute
)

var (
	errStray  = errors.New("a reply belongs to another round trip")
	errExited = errors.New("the connection has called runtime.Goexit")
)

// NewRedigo returns a client that makes connections as the pool does, but takes none from it. Each round trip takes
// at most timeout. Close the client after use.
//
// Redigo allocates memory for a reply as soon as the reply announces its length. If another server than Redis may
// reply, the pool must dial connections that limit this length, as store.Open does.
func NewRedigo(pool *redis.Pool, timeout time.Duration) *Redigo {
	return &Redigo{pool: pool, timeout: timeout, stuck: timeout / 8}
}

// DoRouted implements [RoutedClient].
func (c *Redigo) DoRouted(ctx context.Context, key string, commands ...Command) ([]any, Route, error) {
	replies, err := c.Do(ctx, key, commands...)
	return replies, Route{Node: c.Address, Database: c.Database}, err
}

// Do implements [Client].
func (c *Redigo) Do(ctx context.Context, _ string, commands ...Command) ([]any, error) {
	now := time.Now()
	if err := ctx.Err(); err != nil || len(commands) == 0 {
		return nil, unsent(err)
	}
	deadline := now.Add(c.timeout)
	end, ok := ctx.Deadline()
	hurried := ok && end.Before(deadline)
	if hurried {
		if !now.Before(end) { // the timer of ctx is late
			return nil, unsent(context.DeadlineExceeded)
		}
		commands = cloned(commands)
	}
	x, ok := c.spare.Get().(*call)
	if !ok {
		x = &call{wake: make(chan struct{}, 1)}
	}
	x.commands, x.deadline = commands, deadline
	cancelled := ctx.Done() // before mu, which all callers wait for
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enqueue(x, now)
	if hurried {
		return c.deliverBy(ctx, x, end)
	}
	c.deliver(ctx, x, cancelled)
	replies, err := x.replies, x.err
	if err == nil {
		// x was written, and no link has it any more, so it can be used again. If a signal is left in wake, the
		// next caller that waits checks its state once more than it needs to.
		*x = call{wake: x.wake}
		c.spare.Put(x)
	}
	return replies, err
}

// cloned returns copies of the commands, which the caller cannot change.
func cloned(commands []Command) []Command {
	commands = slices.Clone(commands)
	for i, command := range commands {
		commands[i] = slices.Clone(command)
		for j, arg := range command {
			if b, ok := arg.([]byte); ok {
				commands[i][j] = bytes.Clone(b)
			}
		}
	}
	return commands
}

// enqueue gives x to a link. mu is held when enqueue and the functions below are called, except the exported
// functions and dial.
func (c *Redigo) enqueue(x *call, now time.Time) {
	if c.closed {
		x.complete(nil, unsent(ErrClosed))
		return
	}
	l := c.choose(now)
	x.link, x.since, l.used = l, now, now
	l.calls = append(l.calls, x)
	due := now.Add(c.stuck)
	if x.deadline.Before(due) {
		due = x.deadline
	}
	if due.Before(l.due) {
		l.due = due
		l.timer.Reset(time.Until(due))
	}
}

// choose returns the first link that is not stuck.
func (c *Redigo) choose(now time.Time) *link {
	for _, l := range c.links {
		if len(l.calls) == 0 || now.Sub(l.calls[0].since) < c.stuck {
			return l
		}
	}
	if len(c.links) < maxLinks {
		c.links = append(c.links, newLink(c, now))
	}
	return c.links[len(c.links)-1]
}

// deliver returns when x is done. Meanwhile its caller writes and reads for all calls of the link, or waits.
// Only a caller that waits for a reply reads: the others may be needed to write. cancelled is closed when ctx
// has ended.
func (c *Redigo) deliver(ctx context.Context, x *call, cancelled <-chan struct{}) {
	for !x.done {
		switch l := x.link; {
		case l.conn != nil && l.err == nil && !l.writing && l.taken < len(l.calls):
			l.write(x)
		case l.conn != nil && l.err == nil && !l.reading && x.taken:
			l.read(x)
		default:
			x.waits = true
			c.mu.Unlock()
			over := false
			select {
			case <-x.wake:
			case <-cancelled:
				over = true
			}
			c.mu.Lock()
			x.waits = false
			if over { // x may be done by now, or be on another link
				cancelled = nil
				x.link.withdrawUnsent(x, ctx.Err())
			}
		}
	}
	if l := x.link; l != nil && len(l.calls) > 0 {
		l.wakeOne()
	}
}

// deliverBy is deliver for a caller that has less time than a round trip may take. If this caller left, it
// would break the connection for other callers. So a goroutine delivers x, and ends by the timeout. It has a
// copy of the commands, since the caller may leave while they are being sent.
func (c *Redigo) deliverBy(ctx context.Context, x *call, end time.Time) ([]any, error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.deliver(ctx, x, ctx.Done())
	}()
	timer := time.NewTimer(time.Until(end))
	defer timer.Stop()
	c.mu.Unlock()
	select {
	case <-done:
	case <-timer.C:
	}
	c.mu.Lock()
	if !x.done && !x.link.withdrawUnsent(x, context.DeadlineExceeded) {
		return nil, fmt.Errorf("%w: no reply: %w", ErrUnavailable, context.DeadlineExceeded)
	}
	return x.replies, x.err
}

// Close makes later round trips fail. Round trips that are under way are finished.
func (c *Redigo) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.retire()
	return nil
}

// Reset breaks the connections that take new calls; see [Resetter]. The others have few calls left, each of which finds out
// itself whether a reply is its own.
func (c *Redigo) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range slices.Clone(c.links) {
		if l.conn != nil {
			l.fail(errStray)
		}
	}
}

// leaveReplica retires the links to a server that is a replica, but not each time that one of many calls learns that.
func (c *Redigo) leaveReplica(now time.Time) {
	if now.Sub(c.left) > c.timeout/8 {
		c.left = now
		c.retire()
	}
}

// retire gives no more calls to the present links. They end when they have no calls left.
func (c *Redigo) retire() {
	for _, l := range c.links {
		l.retired = true
		l.timer.Reset(0)
	}
	c.links = nil
}

// dial makes a connection as the pool does. mu must not be held.
func (c *Redigo) dial(ctx context.Context) (conn redis.Conn, err error) {
	defer recovered(&err) // a panic in a goroutine of ours would end the process
	switch {
	case c.pool == nil:
		return nil, errors.New("the pool is nil")
	case c.pool.DialContext != nil:
		conn, err = c.pool.DialContext(ctx)
	case c.pool.Dial != nil:
		conn, err = c.pool.Dial()
	default:
		return nil, errors.New("the pool cannot dial")
	}
	if conn == nil && err == nil {
		err = errors.New("the pool has dialled, and returned no connection")
	}
	return conn, err
}

// recovered turns a panic into the error of a call. Call it by defer.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("a panic: %v", r)
	}
}

// unsent returns the error of commands that were not sent because of err, or nil if err is nil.
func unsent(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: no connection: %w", ErrRefused, err)
}
