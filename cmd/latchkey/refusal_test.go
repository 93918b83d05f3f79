package main

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/store"
)

// A refusing is a connection that Redis has closed after it sent a line. Writing to it fails, or does not yet.
type refusing struct {
	net.Conn
	said  string
	write error
}

func (c *refusing) Read(b []byte) (int, error) {
	n := copy(b, c.said)
	if c.said = c.said[n:]; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (c *refusing) Write(b []byte) (int, error)     { return 0, c.write }
func (c *refusing) SetReadDeadline(time.Time) error { return nil }

// What Redis has sent before it closed a connection is the reason, whether the client notices the end when it writes
// or when it reads. If Redis has sent nothing, it may want TLS.
func TestRefusals(t *testing.T) {
	t.Parallel()
	r := &redis{o: store.Options{Timeout: time.Second}}
	for _, c := range []struct{ said, want string }{
		{"-ERR max number of clients reached\r\n", "redis at a:1: ERR max number of clients reached: stop a program that you can spare, then CLIENT LIST shows who uses them (" + pages + "store/SYMPTOMS.md#maxclients)"},
		{"-DENIED Redis is running in protected mode\r\n", "redis at a:1: DENIED Redis is running in protected mode"},
		{"\x15\x03\x03\x00\x02\x02\x46", "redis at a:1: the server needs TLS: write rediss or valkeys as the URL's scheme"},
		{"+PONG\r\n", "redis at a:1: the server has closed the connection"},
		{"", "redis at a:1: the server has closed the connection at once: perhaps it needs TLS: then write rediss or valkeys as the URL's scheme"},
	} {
		_, err := (&greeted{Conn: &refusing{said: c.said, write: syscall.EPIPE}}).Write([]byte("HELLO 3"))
		if got := r.explainedAt(err, "a:1").Error(); got != c.want {
			t.Errorf("%q, by a write: %s", c.said, got)
		}
		read := &greeted{Conn: &refusing{said: c.said}}
		_, err = io.ReadAll(readers{read})
		if got := r.explainedAt(err, "a:1").Error(); got != c.want {
			t.Errorf("%q, by a read: %s", c.said, got)
		}
	}
}

// Sentinels are asked without TLS, also if the URL's scheme is rediss.
func TestASentinelThatNeedsTLS(t *testing.T) {
	t.Parallel()
	r := &redis{o: store.Options{Timeout: time.Second}}
	r.option.TLSConfig = new(tls.Config)
	for _, said := range []string{"\x15\x03\x03\x00\x02\x02\x46", ""} {
		_, err := (&greeted{Conn: &refusing{said: said, write: syscall.EPIPE}}).Write([]byte("HELLO 3"))
		want := "redis at a:1: the Sentinel has closed the connection at once: perhaps it needs TLS, and Sentinels are asked without"
		if got := r.explainedAt(err, "a:1").Error(); got != want {
			t.Errorf("%q: %s", said, got)
		}
	}
}

// readers makes an error of the end, which io.ReadAll would not return.
type readers struct{ io.Reader }

func (r readers) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err != nil {
		err = errors.Join(errors.New("broken"), err)
	}
	return n, err
}
