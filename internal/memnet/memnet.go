// Package memnet is a network in memory, for servers and clients in a bubble of testing/synctest. While a
// goroutine waits on one of its connections, the bubble's time can pass; on a real connection it cannot.
//
// Its connections behave like those of TCP on one machine: bytes arrive at once and in order, a write
// blocks while the peer has too much to read, and the peer of a closed side gets the same errors. Nothing
// is lost.
package memnet

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
)

// The network of this process: each listener by its address.
var (
	mu        sync.Mutex // guards all below; held only briefly
	listeners = make(map[string]*Listener)
	hosts     int
)

// Listen returns a listener at address, or at a new address if that is "".
func Listen(address string) *Listener {
	mu.Lock()
	defer mu.Unlock()
	if address == "" {
		hosts++
		address = fmt.Sprintf("host%d.memory:1", hosts)
	}
	l := &Listener{address: Address(address), arriving: make(chan net.Conn), closed: make(chan struct{})}
	listeners[address] = l
	return l
}

// Has reports whether an address belongs to this network.
func Has(address string) bool { return strings.HasSuffix(address, ".memory:1") }

// DialContext connects to a listener. It fits net/http's Transport and redigo. If no listener has the
// address, the connection is refused. Addresses of other networks are dialled as usual.
func DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if !Has(address) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	mu.Lock()
	l := listeners[address]
	mu.Unlock()
	if l == nil {
		return nil, refused(address)
	}
	client, server := Pipe(Address("client.memory:1"), l.address)
	select {
	case l.arriving <- server:
		return client, nil
	case <-l.closed:
		return nil, refused(address)
	case <-ctx.Done():
		return nil, &net.OpError{Op: "dial", Net: "memory", Addr: Address(address), Err: ctx.Err()}
	}
}

func refused(address string) error {
	return &net.OpError{Op: "dial", Net: "memory", Addr: Address(address), Err: syscall.ECONNREFUSED}
}

// An Address is a net.Addr: any host:port.
type Address string

// Network implements net.Addr.
func (Address) Network() string { return "memory" }

func (a Address) String() string { return string(a) }

// A Listener is a net.Listener.
type Listener struct {
	address  Address
	arriving chan net.Conn
	once     sync.Once
	closed   chan struct{}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.arriving:
		return c, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "accept", Net: "memory", Addr: l.address, Err: net.ErrClosed}
	}
}

// Close implements net.Listener. Later dials are refused.
func (l *Listener) Close() error {
	l.once.Do(func() {
		mu.Lock()
		if listeners[string(l.address)] == l {
			delete(listeners, string(l.address))
		}
		mu.Unlock()
		close(l.closed)
	})
	return nil
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return l.address }
