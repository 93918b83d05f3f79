// Package rig has the real parts of the fault suite: wires that can be made to fail, replicas, sentinels,
// and clocks. The servers come from package redistest, the demos from package demotest.
package rig

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// A Wire leads to a server, like a TCP proxy, a load balancer or a virtual IP. It can delay, cut off and
// repeat bytes, and lead to another server. It does not know the protocol: to hit a certain command, use
// redistest.Proxy.
type Wire struct {
	Addr string // host:port
	URL  string // redis://host:port

	running sync.WaitGroup // all goroutines

	mu       sync.Mutex // guards all below
	listener net.Listener
	target   string
	open     map[*connection]bool
	up, down *Trouble // nil: none
	seen     int      // number of pieces, for Every
	happened int      // how many pieces have come twice
}

// A Trouble is what happens to the bytes in one direction until Heal.
type Trouble struct {
	Latency, Jitter time.Duration // they arrive later, by Latency plus or minus Jitter
	Hold            bool          // they arrive after Heal, as when a network is whole again
	Lose            bool          // they never arrive
	Bytewise        bool          // each byte arrives alone
	Limit           int           // the connection ends after that many bytes, if it is not 0; -1: after none

	// One piece in Every comes twice, the copy after Later other pieces. A piece is the bytes of one
	// read, or that many Lines of them. Redis sends pieces with any number of replies.
	Every, Later, Lines int

	over chan struct{} // closed by Heal
}

// A connection is one through a wire.
type connection struct {
	client, server net.Conn
	broken         bool // some bytes are lost, so it cannot go on; the wire's mu guards it
}

func (c *connection) close() {
	_ = c.client.Close()
	_ = c.server.Close()
}

// NewWire starts a wire to target, a host:port. It ends with the test.
func NewWire(tb testing.TB, target string) *Wire {
	tb.Helper()
	w := &Wire{Addr: "127.0.0.1:0", target: target, open: make(map[*connection]bool)}
	w.Join(tb)
	w.Addr = w.listener.Addr().String()
	w.URL = "redis://" + w.Addr
	tb.Cleanup(func() {
		w.Cut()
		w.Heal()
		w.running.Wait()
	})
	return w
}

// Lead makes new connections lead to another server. Open connections stay with their server.
func (w *Wire) Lead(target string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.target = target
}

// Drop breaks all connections.
func (w *Wire) Drop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.open {
		c.close()
	}
}

// Cut breaks all connections and refuses new ones, until Join.
func (w *Wire) Cut() {
	w.mu.Lock()
	_ = w.listener.Close()
	w.mu.Unlock()
	w.Drop()
}

// Join ends a Cut.
func (w *Wire) Join(tb testing.TB) {
	tb.Helper()
	listener, err := net.Listen("tcp", w.Addr)
	if err != nil {
		tb.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listener = listener
	w.running.Go(func() { w.accept(listener) })
}

// Trouble causes trouble for the bytes that clients send (up), and for the bytes that they get (down);
// nil: none. It affects all connections, including open ones.
func (w *Wire) Trouble(up, down *Trouble) {
	w.Heal()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range []*Trouble{up, down} {
		if t != nil {
			t.over = make(chan struct{})
		}
	}
	w.up, w.down = up, down
}

// Heal ends all trouble. Connections that have lost bytes end, too.
func (w *Wire) Heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range []*Trouble{w.up, w.down} {
		if t != nil {
			close(t.over)
		}
	}
	w.up, w.down = nil, nil
	for c := range w.open {
		if c.broken {
			c.close()
		}
	}
}

// Happened returns how many pieces have come twice so far.
func (w *Wire) Happened() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.happened
}

func (w *Wire) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		w.running.Go(func() { w.connect(client) })
	}
}

func (w *Wire) connect(client net.Conn) {
	defer client.Close()
	w.mu.Lock()
	target := w.target
	w.mu.Unlock()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return // the server is unavailable: the client finds its connection closed
	}
	c := &connection{client: client, server: server}
	defer c.close()
	w.mu.Lock()
	w.open[c] = true
	w.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { w.carry(c, client, server, &w.up) })
	both.Go(func() { w.carry(c, server, client, &w.down) })
	both.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, c)
}

// A piece is the bytes of one read.
type piece struct {
	bytes []byte
	at    time.Time
}

// carry copies the bytes from one side to the other, subject to the trouble.
func (w *Wire) carry(c *connection, from io.Reader, to io.Writer, trouble **Trouble) {
	defer c.close()
	pieces, ended := make(chan piece, 4096), make(chan struct{})
	defer close(ended)
	w.running.Go(func() {
		defer close(pieces)
		for buffer := make([]byte, 64<<10); ; {
			n, err := from.Read(buffer)
			if err != nil {
				return
			}
			select {
			case pieces <- piece{bytes.Clone(buffer[:n]), time.Now()}:
			case <-ended:
				return
			}
		}
	})
	var copies []*later
	carried := 0
	for p := range pieces {
		w.mu.Lock()
		t := *trouble
		if t != nil && t.Lose {
			c.broken = true
		}
		w.mu.Unlock()
		out := [][]byte{p.bytes}
		if t != nil {
			if t.Lose {
				continue
			}
			t.wait(p.at)
			out = w.cut(t, p.bytes, &copies)
		}
		for _, b := range out {
			if t != nil && t.Limit != 0 {
				b = b[:min(len(b), max(0, t.Limit-carried))]
			}
			if _, err := to.Write(b); err != nil || t != nil && t.Limit != 0 && carried+len(b) >= t.Limit {
				return
			}
			carried += len(b)
		}
	}
}

// wait returns when a piece that arrived at a time may go on.
func (t *Trouble) wait(at time.Time) {
	delay := t.Latency
	if t.Jitter > 0 {
		delay += time.Duration(rand.Int64N(int64(2*t.Jitter))) - t.Jitter
	}
	if t.Hold {
		<-t.over
	} else if left := time.Until(at.Add(delay)); left > 0 {
		select {
		case <-time.After(left):
		case <-t.over:
		}
	}
}

// A later is a copy that goes on after a number of other pieces.
type later struct {
	bytes []byte
	left  int
}

// cut returns the pieces that a piece becomes.
func (w *Wire) cut(t *Trouble, whole []byte, copies *[]*later) (out [][]byte) {
	if t.Bytewise {
		for i := range whole {
			out = append(out, whole[i:i+1])
		}
		return out
	}
	if t.Every == 0 {
		return [][]byte{whole}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range linewise(whole, t.Lines) {
		out = append(out, b)
		if w.seen++; w.seen%t.Every == 0 {
			*copies = append(*copies, &later{b, t.Later + 1})
		}
		for _, c := range *copies {
			if c.left--; c.left == 0 {
				out = append(out, c.bytes)
				w.happened++
			}
		}
	}
	return out
}

// linewise cuts text after every given number of lines; 0: not at all.
func linewise(text []byte, lines int) (all [][]byte) {
	for n := 0; lines > 0; n = 0 {
		end := 0
		for ; n < lines; n++ {
			i := bytes.IndexByte(text[end:], '\n')
			if i < 0 {
				break
			}
			end += i + 1
		}
		if n < lines {
			break
		}
		all, text = append(all, text[:end]), text[end:]
	}
	if len(text) > 0 {
		all = append(all, text)
	}
	return all
}
