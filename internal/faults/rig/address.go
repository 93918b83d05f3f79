package rig

import (
	"io"
	"net"
	"sync"
	"testing"
)

// An Address leads to one server, and can be made to lead to another, like a virtual IP
// or a load balancer. Open connections stay with their server.
type Address struct {
	Addr string // host:port
	URL  string // redis://host:port

	listener net.Listener
	running  sync.WaitGroup

	mu     sync.Mutex // guards what follows
	target string
	open   map[net.Conn]bool
	made   int
}

// NewAddress starts an address that leads to target, a host:port. It ends with the test.
func NewAddress(tb testing.TB, target string) *Address {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	addr := listener.Addr().String()
	a := &Address{Addr: addr, URL: "redis://" + addr, listener: listener, target: target, open: make(map[net.Conn]bool)}
	a.running.Go(a.accept)
	tb.Cleanup(func() {
		_ = listener.Close()
		a.Drop()
		a.running.Wait()
	})
	return a
}

// Lead makes new connections lead to another server.
func (a *Address) Lead(target string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.target = target
}

// Drop breaks all connections.
func (a *Address) Drop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for conn := range a.open {
		_ = conn.Close() // ends its goroutine, too
	}
}

// Connections returns how many connections have been made so far.
func (a *Address) Connections() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.made
}

func (a *Address) accept() {
	for {
		client, err := a.listener.Accept()
		if err != nil {
			return
		}
		a.running.Go(func() { a.connect(client) })
	}
}

func (a *Address) connect(client net.Conn) {
	defer client.Close()
	a.mu.Lock()
	target := a.target
	a.made++
	a.mu.Unlock()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return // the server is away: the client finds its connection closed
	}
	defer server.Close()
	a.note(client, server)
	defer a.forget(client, server)
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_, _ = client.Close(), server.Close() // one direction alone is of no use
		})
	}
	both.Wait()
}

func (a *Address) note(conns ...net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, conn := range conns {
		a.open[conn] = true
	}
}

func (a *Address) forget(conns ...net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, conn := range conns {
		delete(a.open, conn)
	}
}
