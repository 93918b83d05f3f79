package redistest

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// Embedded starts an imitation of Redis inside the test binary. It starts in no
// time and needs nothing installed. Unlike a bare miniredis, its keys expire as
// time passes.
func Embedded(tb testing.TB) *Server {
	tb.Helper()
	return newServer(tb, &embedded{})
}

// embedded is a backend. Each start makes a new Miniredis: a used one would keep
// its data and its scripts.
type embedded struct {
	mini  atomic.Pointer[miniredis.Miniredis]
	clock *clock
	addr  string
}

func (e *embedded) start(addr string) error {
	m := miniredis.NewMiniRedis()
	if err := m.StartAddr(addr); err != nil {
		return err
	}
	e.mini.Store(m)
	e.clock = startClock(m)
	e.addr = addr
	return nil
}

// stop also waits until connections are refused. A process that another test is
// starting right now has a copy of the listener, from the fork until the exec.
// So for a moment the address stays open, though the listener is closed.
func (e *embedded) stop() {
	e.clock.stop()
	e.mini.Load().Close()
	for {
		c, err := net.DialTimeout("tcp", e.addr, timeout)
		if err != nil {
			return
		}
		c.Close()
		time.Sleep(time.Millisecond)
	}
}
