package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/rueidis"
)

// A Redis that refuses a connection, since it is at maxclients or in protected mode, sends one line and closes the
// connection, without reading what was sent. So the client's write may fail before it reads that line, or a later
// reply may be missing. The client reports only that. A greeted connection remembers the line.

// A refusal is the line that Redis sent before it closed the connection.
type refusal struct {
	line string
	err  error
}

func (r refusal) Error() string { return r.line }
func (r refusal) Unwrap() error { return r.err }

// errAtOnce says that a connection was closed, or reset, before the server had sent anything.
var errAtOnce = errors.New("the connection was closed at once")

// errTLSAlert says that the server has replied in TLS to a client that does not speak it.
var errTLSAlert = errors.New("the server speaks TLS")

type dialer = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error)

// greeting returns a dialer of greeted connections, around that of o, if o has one. With TLS nobody reads a line
// before the handshake, and Redis sends none.
func greeting(o rueidis.ClientOption) dialer {
	return func(ctx context.Context, address string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
		if config != nil {
			return (&tls.Dialer{NetDialer: d, Config: config}).DialContext(ctx, "tcp", address)
		}
		dial := o.DialCtxFn
		if dial == nil {
			dial = func(ctx context.Context, address string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
				return d.DialContext(ctx, "tcp", address)
			}
		}
		conn, err := dial(ctx, address, d, config)
		if err != nil {
			return nil, err
		}
		return &greeted{Conn: conn}, nil
	}
}

// A greeted is a connection that knows what the server has sent first.
type greeted struct {
	net.Conn
	first atomic.Pointer[string]
}

func (c *greeted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.note(b[:n])
	return n, c.because(err)
}

func (c *greeted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil && c.first.Load() == nil { // then nobody reads yet
		line := make([]byte, 512)
		_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		got, _ := c.Conn.Read(line)
		c.note(line[:got])
	}
	return n, c.because(err)
}

// note keeps the first line.
func (c *greeted) note(b []byte) {
	if len(b) > 0 && c.first.Load() == nil {
		line, _, _ := bytes.Cut(b, []byte("\r\n"))
		text := string(line)
		c.first.Store(&text)
	}
}

// because adds to the error of a broken connection what the server had sent first.
func (c *greeted) because(err error) error {
	const alert = "\x15\x03" // how a record of TLS begins that says what went wrong
	switch first := c.first.Load(); {
	case err == nil || !isClosed(err):
		return err
	case first == nil:
		return errors.Join(errAtOnce, err)
	case (*first)[0] == '-':
		return refusal{(*first)[1:], err}
	case len(*first) >= len(alert) && (*first)[:len(alert)] == alert:
		return errors.Join(errTLSAlert, err)
	}
	return err
}

func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
