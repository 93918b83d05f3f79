package clienttest

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"

	"github.com/a2139e8d/latchkey/internal/memnet"
)

// A wire leads to a server. It carries all data, and fails on purpose.
type wire struct {
	address string
	target  string
	running sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	ends   []net.Conn
	closed bool
	fault  fault
	heard  []byte // from clients, since listen
}

// A fault happens to the next command, and hole to all later commands, too.
type fault int

const (
	none        fault = iota
	loseCommand       // the connection breaks before the command reaches Redis
	loseReply         // Redis does the work, but the connection breaks before the reply
	cutTheReply       // the connection breaks in the middle of the reply
	hole              // all data is lost, and the connection stays open
)

func newWire(t testing.TB, target string) *wire {
	var listener net.Listener = memnet.Listen("")
	if !memnet.Has(target) {
		var err error
		listener, err = net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
	}
	w := &wire{address: listener.Addr().String(), target: target}
	w.running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			w.connect(client)
		}
	})
	t.Cleanup(func() {
		listener.Close()
		w.mu.Lock()
		w.closed = true
		for _, c := range w.ends {
			c.Close()
		}
		w.mu.Unlock()
		w.running.Wait()
	})
	return w
}

func (w *wire) connect(client net.Conn) {
	server, err := memnet.DialContext(context.Background(), "tcp", w.target)
	if err != nil {
		client.Close() // the server is down
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends = append(w.ends, client, server)
	if w.closed {
		client.Close()
		server.Close()
	}
	replies := make(chan fault, 1) // the fault of the next reply
	w.running.Go(func() {
		carry(client, server, func(data []byte) ([]byte, bool) { return w.command(data, replies) })
	})
	w.running.Go(func() {
		carry(server, client, func(data []byte) ([]byte, bool) { return reply(data, replies) })
	})
}

// carry copies data from one end to the other, as far as pass lets it, and then closes both ends.
func carry(from, to net.Conn, pass func([]byte) (rest []byte, goOn bool)) {
	defer from.Close()
	defer to.Close()
	buffer := make([]byte, 64<<10)
	for goOn := true; goOn; {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		var data []byte
		data, goOn = pass(buffer[:n])
		if _, err := to.Write(data); err != nil {
			return
		}
	}
}

func (w *wire) command(data []byte, replies chan<- fault) (rest []byte, goOn bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard = append(w.heard, data...)
	f := w.fault
	if f != hole {
		w.fault = none
	}
	switch f {
	case loseCommand:
		return nil, false
	case hole:
		return nil, true
	case loseReply, cutTheReply:
		replies <- f
	}
	return data, true
}

func reply(data []byte, replies <-chan fault) (rest []byte, goOn bool) {
	select {
	case f := <-replies:
		if f == cutTheReply {
			return data[:len(data)/2], false
		}
		return nil, false
	default:
		return data, true
	}
}

// breakNext makes the fault happen to the next command.
func (w *wire) breakNext(f fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault = f
}

// listen forgets the data that was heard.
func (w *wire) listen() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard = nil
}

// has reports whether all the words were heard since listen.
func (w *wire) has(words ...string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, word := range words {
		if !bytes.Contains(w.heard, []byte(word)) {
			return false
		}
	}
	return true
}
