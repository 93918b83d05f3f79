package world

import (
	"io"
	"math/rand/v2"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/a2139e8d/latchkey/internal/fakeredis"
)

// A conn is a process's connection to Redis, with everything under way on it. The world's mu guards all
// of it.
type conn struct {
	world   *World
	process *process
	number  int
	rand    *rand.Rand // decides what happens to its messages

	// The client's side.
	arrived  []byte
	closed   bool
	broken   error // why nothing arrives any more
	wake     chan struct{}
	deadline time.Time

	// Under way in both directions, in the order of sending.
	partial []byte // of a command that was not sent completely
	up      []func()
	upLast  time.Duration
	down    []func()
	dnLast  time.Duration
	swap    *swap // nil: no reply waits for another

	// Redis's side.
	server     *fakeredis.Client // nil: Redis has closed it
	silent     bool              // nothing gets through any more
	severed    bool              // Redis has restarted since
	subscribed bool
}

var errTimeout = os.ErrDeadlineExceeded

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	for {
		n, deadline, err := c.take(p)
		if n > 0 || err != nil {
			return n, err
		}
		if deadline.IsZero() {
			<-c.wake
			continue
		}
		timer := time.NewTimer(time.Until(deadline))
		select {
		case <-c.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// take returns what has arrived, if anything.
func (c *conn) take(p []byte) (n int, deadline time.Time, err error) {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	switch {
	case c.closed:
		err = net.ErrClosed
	case !c.deadline.IsZero() && !time.Now().Before(c.deadline):
		err = &net.OpError{Op: "read", Net: "tcp", Err: errTimeout}
	case len(c.arrived) > 0:
		n = copy(p, c.arrived)
		c.arrived = c.arrived[n:]
	case c.broken != nil:
		err = c.broken
	}
	return n, c.deadline, err
}

// Write implements net.Conn. It never blocks: the network accepts everything.
func (c *conn) Write(p []byte) (int, error) {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	switch {
	case c.closed:
		return 0, net.ErrClosed
	case c.broken != nil:
		return 0, &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
	}
	c.partial = append(c.partial, p...)
	for {
		args, rest, ok := cutCommand(c.partial)
		if !ok {
			return len(p), nil
		}
		c.partial = rest
		c.send(args)
	}
}

// Close implements net.Conn. Bytes that were sent before still arrive.
func (c *conn) Close() error {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	if !c.closed {
		c.closed = true
		c.sendUp(c.travel(), c.hangUp)
		c.rouse()
	}
	return nil
}

// rouse wakes a Read.
func (c *conn) rouse() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// SetReadDeadline implements net.Conn. It adds a few nanoseconds, so that the deadline differs from that
// of a context or another connection: chance must not decide which one passes first.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	if c.deadline = t; !t.IsZero() && time.Until(t) > 0 {
		c.deadline = t.Add(time.Duration(1 + c.process.number + 4*(c.number%1000)))
	}
	return nil
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn. A Write takes no time.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return &net.TCPAddr{Port: c.number} }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return &net.TCPAddr{Port: 6379} }

// crack breaks the connection for the client. The caller holds mu.
func (c *conn) crack(err error) {
	if c.broken == nil {
		c.broken = err
		c.rouse()
	}
}

// reset is the error of a client that is cut off.
var reset = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}

// hangUp ends Redis's side. The client notices a little later.
func (c *conn) hangUp() {
	if c.server != nil {
		c.server.Close()
		c.server = nil
		c.sendDown(c.travel(), func() { c.crack(io.EOF) })
	}
}
