package transport_test

import (
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/a2139e8d/latchkey/locker/transport/clienttest"
	"github.com/gomodule/redigo/redis"
)

// The client of a redigo pool keeps all promises of a Client.
func TestRedigo(t *testing.T) {
	t.Parallel()
	clienttest.Run(t, clienttest.Kind{Open: open, Start: start, OneWrite: true})
}

func open(t testing.TB, address string, timeout time.Duration) transport.Client {
	c := transport.NewRedigo(&redis.Pool{
		Dial: func() (redis.Conn, error) { return redis.Dial("tcp", address) },
	}, timeout)
	t.Cleanup(func() { c.Close() })
	return c
}

func start(t testing.TB) clienttest.Server {
	s := redistest.Real(t)
	return clienttest.Server{
		Address: s.Addr,
		Stop:    func() { s.Stop(t) },
		Restart: func() { s.Restart(t) },
		Pause:   func() { s.Pause(t) },
		Resume:  func() { s.Resume(t) },
	}
}
