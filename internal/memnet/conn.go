package memnet

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// capacity is how many bytes may be under way in one direction.
const capacity = 256 << 10

// A conn is one side of a connection.
type conn struct {
	in, out          *stream
	local, remote    Address
	reading, writing deadline
}

// Pipe returns the two sides of a connection.
func Pipe(client, server Address) (net.Conn, net.Conn) {
	up, down := newStream(), newStream()
	return &conn{in: down, out: up, local: client, remote: server, reading: newDeadline(), writing: newDeadline()},
		&conn{in: up, out: down, local: server, remote: client, reading: newDeadline(), writing: newDeadline()}
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.in.read(p, &c.reading)
	if err != nil && err != io.EOF {
		err = c.failed("read", err)
	}
	return n, err
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	n, err := c.out.write(p, &c.writing)
	if err != nil {
		err = c.failed("write", err)
	}
	return n, err
}

func (c *conn) failed(what string, err error) error {
	return &net.OpError{Op: what, Net: "memory", Source: c.local, Addr: c.remote, Err: err}
}

// Close implements net.Conn. Bytes that were written before still arrive. The peer cannot answer after it has read the
// end, so this side stops reading before it stops writing.
func (c *conn) Close() error {
	c.in.leave()
	c.out.end()
	c.reading.set(time.Time{})
	c.writing.set(time.Time{})
	return nil
}

// CloseWrite is like that of a net.TCPConn: the peer reads io.EOF, and may still write.
func (c *conn) CloseWrite() error {
	c.out.end()
	return nil
}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	c.reading.set(t)
	c.writing.set(t)
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.reading.set(t)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.writing.set(t)
	return nil
}

// A stream is one direction of a connection.
type stream struct {
	mu      sync.Mutex // guards all below; held only briefly, and never while waiting
	bytes   []byte
	ended   bool          // the writer has closed it
	left    bool          // the reader has closed it
	changed chan struct{} // closed, and replaced, whenever anything changes
}

func newStream() *stream { return &stream{changed: make(chan struct{})} }

// change wakes all waiters. The caller holds mu.
func (s *stream) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.change()
}

func (s *stream) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left, s.bytes = true, nil
	s.change()
}

func (s *stream) read(p []byte, d *deadline) (int, error) {
	return s.wait(d, func() (int, error, bool) {
		switch {
		case s.left:
			return 0, net.ErrClosed, true
		case len(s.bytes) > 0 || len(p) == 0:
			n := copy(p, s.bytes)
			s.bytes = s.bytes[n:]
			s.change()
			return n, nil, true
		case s.ended:
			return 0, io.EOF, true
		}
		return 0, nil, false
	})
}

func (s *stream) write(p []byte, d *deadline) (done int, err error) {
	return s.wait(d, func() (int, error, bool) {
		switch {
		case s.ended:
			return done, net.ErrClosed, true
		case s.left:
			return done, syscall.EPIPE, true
		}
		n := min(len(p), capacity-len(s.bytes))
		s.bytes = append(s.bytes, p[:n]...)
		p, done = p[n:], done+n
		if n > 0 {
			s.change()
		}
		return done, nil, len(p) == 0
	})
}

// wait repeats try until try says that it is over or the deadline has passed. The caller holds mu.
func (s *stream) wait(d *deadline, try func() (n int, err error, over bool)) (int, error) {
	for {
		passed := d.passed()
		select {
		case <-passed:
			return 0, os.ErrDeadlineExceeded
		default:
		}
		s.mu.Lock()
		n, err, over := try()
		changed := s.changed
		s.mu.Unlock()
		if over {
			return n, err
		}
		select {
		case <-changed:
		case <-passed:
		}
	}
}

// A deadline is a time that may be moved while goroutines wait for it.
type deadline struct {
	mu    sync.Mutex // guards all below
	timer *time.Timer
	over  chan struct{} // closed when the deadline has come
}

func newDeadline() deadline { return deadline{over: make(chan struct{})} }

// passed returns a channel that is closed when the deadline comes. If the deadline is moved, a goroutine
// that waits already goes on waiting on the same channel.
func (d *deadline) passed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.over
}

func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		<-d.over // it closes, or has closed, the channel
	}
	d.timer = nil
	select {
	case <-d.over:
		d.over = make(chan struct{})
	default:
	}
	if t.IsZero() {
		return
	}
	if left := time.Until(t); left > 0 {
		over := d.over
		d.timer = time.AfterFunc(left, func() { close(over) })
	} else {
		close(d.over)
	}
}
