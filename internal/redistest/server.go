// Package redistest gives each test a Redis server, and a proxy that makes connections to it fail on
// purpose.
package redistest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/gomodule/redigo/redis"
)

// Server is a Redis for one test: in memory or a real process. It starts empty and ends with the test.
type Server struct {
	Addr string // host:port
	URL  string // redis://host:port

	backend backend
	admin   *redis.Pool
}

// A backend is what differs between the kinds of server.
type backend interface {
	// start starts a new server that listens on addr. It is empty, unless it is a real one whose flags
	// make it keep its data.
	start(addr string) error
	// stop ends a started server and waits for its end. A second call does nothing.
	stop()
}

// Ports are below the range from which Linux assigns ports (32768 and up). So while a server is stopped,
// no outgoing connection and no other listener gets its port by chance, and Restart finds it free.
const (
	firstPort = 20000
	ports     = 12000
)

func newServer(tb testing.TB, b backend) *Server {
	tb.Helper()
	var err error
	for range 5 { // a port may be in use: try others
		addr := fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(ports))
		if err = startReserved(tb, b, addr); err == nil {
			return &Server{
				Addr:    addr,
				URL:     "redis://" + addr,
				backend: b,
				admin:   newAdminPool(tb, addr),
			}
		}
	}
	tb.Fatalf("redistest: %v", err)
	return nil
}

// startReserved starts b until the end of the test. It also binds the UDP port with the same number,
// which is not used for anything else. That keeps other tests, even in other processes, from starting a
// server on this port while this server is stopped.
func startReserved(tb testing.TB, b backend, addr string) error {
	reservation, err := net.ListenPacket("udp", addr)
	if err != nil {
		return err
	}
	if err := b.start(addr); err != nil {
		reservation.Close()
		return err
	}
	tb.Cleanup(func() {
		b.stop()
		reservation.Close()
	})
	return nil
}

// Each runs f twice, in parallel: in fake time on a server in memory, which is exact and fast, and on a
// real server, which shows what Redis really does.
func Each(t *testing.T, f func(t *testing.T, s *Server)) {
	t.Helper()
	t.Run("in fake time", func(t *testing.T) {
		t.Parallel()
		InFakeTime(t, f)
	})
	t.Run("real", func(t *testing.T) {
		t.Parallel()
		f(t, Real(t))
	})
}

// EachInRealTime runs f twice, in parallel, on an embedded server and on a real one, without fake time.
// It is for tests that wait for a mutex, or need addresses that other processes can dial.
func EachInRealTime(t *testing.T, f func(t *testing.T, s *Server)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		f(t, Embedded(t))
	})
	t.Run("real", func(t *testing.T) {
		t.Parallel()
		f(t, Real(t))
	})
}

// IsReal reports whether s is a process and not the imitation in memory.
func (s *Server) IsReal() bool {
	_, ok := s.backend.(*process)
	return ok
}

// Socket returns the path of a real server's Unix socket, or "" for an embedded server, which has none.
func (s *Server) Socket() string {
	if p, ok := s.backend.(*process); ok {
		return p.socket
	}
	return ""
}

// Stop ends the server as a crash would: a process gets SIGKILL. Its connections break, its data in
// memory is lost, and new connections are refused until Restart.
func (s *Server) Stop(tb testing.TB) {
	tb.Helper()
	s.backend.stop()
}

// Restart stops the server, if it still runs, and starts a new one at the same address. The new one is
// empty, and so is its script cache; only a real server that writes a log ("--appendonly", "yes") starts
// with the data in the log.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	s.backend.stop()
	if err := s.backend.start(s.Addr); err != nil {
		tb.Fatalf("redistest: restart: %v", err)
	}
}

// Pause freezes a server. Connections stay open and new ones are even accepted, but no command is
// answered until Resume.
func (s *Server) Pause(tb testing.TB) {
	tb.Helper()
	if m, ok := s.backend.(*memory); ok {
		m.pause()
		return
	}
	s.signal(tb, syscall.SIGSTOP)
}

// Resume lets a paused server continue. It then executes the commands that clients sent meanwhile, even
// if the clients no longer wait.
func (s *Server) Resume(tb testing.TB) {
	tb.Helper()
	if m, ok := s.backend.(*memory); ok {
		m.resume()
		return
	}
	s.signal(tb, syscall.SIGCONT)
}

func (s *Server) signal(tb testing.TB, sig os.Signal) {
	tb.Helper()
	p, ok := s.backend.(*process)
	if !ok {
		tb.Fatal("redistest: an embedded server cannot be paused")
	}
	p.running.Signal(tb, sig)
}
