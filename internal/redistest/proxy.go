package redistest

import (
	"bufio"
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/a2139e8d/latchkey/internal/memnet"
	"github.com/gomodule/redigo/redis"
)

// Proxy stands between clients and a Server. It records the commands and, if Inject says so, makes them
// fail the way networks do. It expects one reply to each command, so subscriptions get no messages.
type Proxy struct {
	Addr string // host:port
	URL  string // redis://host:port

	tb       testing.TB
	target   string
	listener net.Listener
	running  sync.WaitGroup // all goroutines

	deciding sync.Mutex // held while an injected function runs

	mu       sync.Mutex // guards all below
	inject   func(Command) Fault
	commands []Command
	trips    int // of commands
	held     []*heldCommand
	hung     bool // a command or a connection
}

// NewProxy starts a proxy in front of s. When the test ends, it closes all its
// connections and waits for its goroutines.
func NewProxy(tb testing.TB, s *Server) *Proxy {
	tb.Helper()
	var listener net.Listener
	if memnet.Has(s.Addr) {
		listener = memnet.Listen("")
	} else {
		var err error
		if listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			tb.Fatalf("redistest: %v", err)
		}
	}
	addr := listener.Addr().String()
	p := &Proxy{
		Addr:     addr,
		URL:      "redis://" + addr,
		tb:       tb,
		target:   s.Addr,
		listener: listener,
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.running.Go(func() { p.accept(ctx) })
	tb.Cleanup(func() {
		listener.Close()
		cancel()
		p.running.Wait()
	})
	return p
}

// Pool returns a pool of at most size connections through the proxy, closed when
// the test ends.
func (p *Proxy) Pool(tb testing.TB, size int) *redis.Pool {
	tb.Helper()
	return newPool(tb, p.Addr, size)
}

// Commands returns what clients have sent since the last Forget, in order.
func (p *Proxy) Commands() []Command {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.commands)
}

// Requests returns the number of commands that clients have sent since the last
// Forget. Each is a request on the wire; what a script does counts as one.
func (p *Proxy) Requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.commands)
}

// RoundTrips is Requests, but counts commands that a client sent in one write as one.
func (p *Proxy) RoundTrips() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.trips
}

// Forget clears the record.
func (p *Proxy) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.commands, p.trips = nil, 0
}

func (p *Proxy) accept(ctx context.Context) {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.connect(ctx, client) })
	}
}

// connect opens a connection to the server for one client, and closes both when either side is done or
// the test ends.
func (p *Proxy) connect(ctx context.Context, client net.Conn) {
	defer client.Close()
	server, err := memnet.DialContext(ctx, "tcp", p.target)
	if err != nil {
		return // the server is down: the client finds its connection closed
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.running.Go(func() {
		<-ctx.Done()
		client.Close()
		server.Close()
	})
	if err := p.serve(ctx, client, server); errors.Is(err, errProtocol) {
		p.tb.Errorf("redistest: proxy: %v", err)
	}
}

// serve carries commands and replies, one command at a time, until something
// ends the connection.
func (p *Proxy) serve(ctx context.Context, client, server net.Conn) error {
	fromClient, fromServer := bufio.NewReader(client), bufio.NewReader(server)
	for silent := false; ; {
		joined := fromClient.Buffered() > 0 // it came in one write with the command before
		request, err := readMessage(fromClient)
		if err != nil {
			return err
		}
		if len(request.bulks) == 0 {
			return errProtocol
		}
		fault, held := p.decide(Command{
			Name: strings.ToUpper(request.bulks[0]),
			Args: request.bulks[1:],
		}, joined)
		if fault == DropCommand {
			return nil
		}
		reply, err := forward(ctx, server, fromServer, request, held)
		if err != nil || fault == DropReply {
			return err
		}
		if fault == Hang || fault == Die {
			silent = true
		}
		if silent {
			continue
		}
		if fault == CutReply {
			_, err = client.Write(reply.raw[:len(reply.raw)/2])
			return err
		}
		if _, err := client.Write(reply.raw); err != nil {
			return err
		}
	}
}

// forward sends a request to the server when it is no longer held, and returns the reply.
func forward(ctx context.Context, server net.Conn, r *bufio.Reader, request message, held *heldCommand) (message, error) {
	if held != nil {
		defer close(held.done)
		select {
		case <-held.release:
		case <-ctx.Done():
			return message{}, ctx.Err()
		}
	}
	if _, err := server.Write(request.raw); err != nil {
		return message{}, err
	}
	return readMessage(r)
}
