package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"time"
)

// A delayer stands between the application and Redis and makes each round trip take longer, as a network
// does. It does not limit the bandwidth: replies may follow each other as closely as they left Redis.
//
// The whole delay is on the way back: Go cannot sleep for less than about a
// millisecond, so two halves of one would take two.
type delayer struct {
	addr      string
	listener  net.Listener
	target    string
	roundTrip time.Duration
	cancel    context.CancelFunc
	running   sync.WaitGroup // all goroutines
}

func startDelayer(ctx context.Context, target string, roundTrip time.Duration) (*delayer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	d := &delayer{addr: listener.Addr().String(), listener: listener, target: target, roundTrip: roundTrip, cancel: cancel}
	d.running.Go(func() { d.accept(ctx) })
	return d, nil
}

// close ends all connections, and returns when all goroutines have ended.
func (d *delayer) close() {
	d.cancel()
	_ = d.listener.Close() // ends accept
	d.running.Wait()
}

func (d *delayer) accept(ctx context.Context) {
	for {
		client, err := d.listener.Accept()
		if err != nil {
			return // closed
		}
		d.running.Go(func() { d.serve(ctx, client) })
	}
}

// serve connects one client with Redis until one of the two hangs up, or ctx ends.
func (d *delayer) serve(ctx context.Context, client net.Conn) {
	defer client.Close()
	server, err := new(net.Dialer).DialContext(ctx, "tcp", d.target)
	if err != nil {
		return // the client sees its connection end
	}
	defer server.Close()
	hangUp := sync.OnceFunc(func() {
		_ = client.Close()
		_ = server.Close()
	})
	defer context.AfterFunc(ctx, hangUp)()

	late := make(chan packet, 1024) // more than is under way on a connection in a few milliseconds
	var group sync.WaitGroup
	group.Go(func() {
		defer hangUp()
		_, _ = io.Copy(server, client) // for any reason, the connection has ended
	})
	group.Go(func() {
		defer close(late)
		d.read(server, late)
	})
	write(client, late)
	hangUp()
	for range late { // so that read can end
	}
	group.Wait()
}

// A packet has the bytes of one read, and the time at which to pass them on.
type packet struct {
	data []byte
	due  time.Time
}

func (d *delayer) read(server net.Conn, late chan<- packet) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if n > 0 {
			late <- packet{bytes.Clone(buffer[:n]), time.Now().Add(d.roundTrip)}
		}
		if err != nil {
			return
		}
	}
}

func write(client net.Conn, late <-chan packet) {
	for p := range late {
		time.Sleep(time.Until(p.due))
		if _, err := client.Write(p.data); err != nil {
			return
		}
	}
}
