package redistest

import (
	"bufio"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/fakeredis"
	"github.com/a2139e8d/latchkey/internal/memnet"
)

// InFakeTime runs f in a bubble of testing/synctest, with a Redis in memory. Time passes only when every
// goroutine in the bubble waits, and then at once, by exactly the time until the next timer. So a test
// can assert durations to the millisecond.
//
// Three things do not work in a bubble: subtests, connections to real servers, and time while a goroutine
// waits for a sync.Mutex.
func InFakeTime(t *testing.T, f func(t *testing.T, s *Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		// Work in the background, such as a sweep, may pause between two tries. In a bubble it must end before the test does.
		defer Elapse(time.Minute)
		f(t, Memory(t))
	})
}

// Memory starts a Redis in memory (package fakeredis) for a bubble. Clients reach it through Pool, a
// Proxy, or memnet.DialContext.
func Memory(tb testing.TB) *Server {
	tb.Helper()
	m := &memory{listen: func(address string) (net.Listener, error) { return memnet.Listen(address), nil }}
	l := memnet.Listen("")
	address := l.Addr().String()
	l.Close()
	if err := m.start(address); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(m.stop)
	return &Server{Addr: address, backend: m, admin: newAdminPool(tb, address)}
}

// Another starts a second server of the same kind: in memory, or a process.
func (s *Server) Another(tb testing.TB) *Server {
	tb.Helper()
	switch {
	case s.IsReal():
		return Real(tb)
	case memnet.Has(s.Addr):
		return Memory(tb)
	default:
		return Embedded(tb)
	}
}

// Fake lets f inspect a server in memory, or give it faults. No command is executed while f runs.
func (s *Server) Fake(f func(*fakeredis.Server)) {
	m := s.backend.(*memory)
	m.mu.Lock()
	defer m.mu.Unlock()
	f(m.redis)
}

// memory is a backend.
type memory struct {
	listen   func(address string) (net.Listener, error)
	listener net.Listener
	running  sync.WaitGroup

	mu     sync.Mutex // guards all below; held only briefly
	redis  *fakeredis.Server
	conns  map[net.Conn]bool // nil if the server is stopped
	paused chan struct{}     // nil if the server is not paused
}

func (m *memory) start(addr string) error {
	listener, err := m.listen(addr)
	if err != nil {
		return err
	}
	m.listener, m.redis, m.conns = listener, fakeredis.New(), make(map[net.Conn]bool)
	m.running.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			m.mu.Lock()
			stopped := m.conns == nil
			if !stopped {
				m.conns[c] = true
			}
			m.mu.Unlock()
			if stopped { // since the connection was accepted
				c.Close()
				return
			}
			m.running.Go(func() { m.serve(c) })
		}
	})
	return nil
}

func (m *memory) stop() {
	m.listener.Close()
	m.resume()
	m.mu.Lock()
	for c := range m.conns {
		c.Close()
	}
	m.conns = nil
	m.mu.Unlock()
	m.running.Wait()
}

func (m *memory) pause() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.paused == nil {
		m.paused = make(chan struct{})
	}
}

func (m *memory) resume() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.paused != nil {
		close(m.paused)
		m.paused = nil
	}
}

// serve executes the commands of one connection.
func (m *memory) serve(c net.Conn) {
	replies := newOutbox(c)
	m.running.Go(replies.send)
	m.mu.Lock()
	client := m.redis.Connect(func(r fakeredis.Reply) { replies.add(r) })
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		client.Close()
		delete(m.conns, c)
		replies.close()
	}()
	for r := bufio.NewReader(c); ; {
		args, err := fakeredis.ReadCommand(r)
		if err != nil {
			return
		}
		m.execute(client, replies, args)
	}
}

// execute waits until the server is not paused, then executes a command.
func (m *memory) execute(client *fakeredis.Client, replies *outbox, args []string) {
	for {
		m.mu.Lock()
		if paused := m.paused; paused != nil {
			m.mu.Unlock()
			<-paused
			continue
		}
		defer m.mu.Unlock()
		replies.add(client.Do(time.Now(), args...))
		return
	}
}

// An outbox sends replies in order. Like Redis, it does not wait for the client to read.
type outbox struct {
	conn net.Conn

	mu     sync.Mutex // guards all below
	added  *sync.Cond
	bytes  []byte
	closed bool
}

func newOutbox(c net.Conn) *outbox {
	o := &outbox{conn: c}
	o.added = sync.NewCond(&o.mu)
	return o
}

func (o *outbox) add(r fakeredis.Reply) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bytes = r.AppendTo(o.bytes)
	o.added.Signal()
}

// close makes send end after the replies that were added so far.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.added.Signal()
}

// send ends with the connection.
func (o *outbox) send() {
	defer o.conn.Close()
	for {
		o.mu.Lock()
		for len(o.bytes) == 0 && !o.closed {
			o.added.Wait()
		}
		next := o.bytes
		o.bytes = nil
		o.mu.Unlock()
		if len(next) == 0 {
			return
		}
		if _, err := o.conn.Write(next); err != nil {
			return
		}
	}
}

// Elapse lets time pass in a bubble. When it returns, everything due by then has been done.
func Elapse(d time.Duration) {
	time.Sleep(d) // exact in a bubble
	synctest.Wait()
}
