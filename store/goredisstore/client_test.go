package goredisstore

import (
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/a2139e8d/latchkey/locker/transport/clienttest"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

func init() { logging.Disable() } // it complains about what the tests do to it

// go-redis keeps all promises of a Client.
func TestClient(t *testing.T) {
	t.Parallel()
	clienttest.Run(t, clienttest.Kind{Open: open, Start: start, OneWrite: true})
}

func open(t testing.TB, address string, timeout time.Duration) transport.Client {
	return openProtocol(t, address, timeout, 3)
}

// openRESP2 is for what is behind a proxy of package redistest, which knows no RESP3.
func openRESP2(t testing.TB, address string, timeout time.Duration) transport.Client {
	return openProtocol(t, address, timeout, 2)
}

func openProtocol(t testing.TB, address string, timeout time.Duration, protocol int) transport.Client {
	return newClient(t, redis.NewClient(&redis.Options{
		Addr:                  address,
		Protocol:              protocol,
		ContextTimeoutEnabled: true,
		ReadTimeout:           3 * patience, // only the deadline counts
	}), timeout)
}

// newClient returns what NewClient makes of c, which is closed when t ends.
func newClient(t testing.TB, c redis.UniversalClient, timeout time.Duration) transport.Client {
	t.Helper()
	t.Cleanup(func() { c.Close() })
	client, err := NewClient(c, timeout)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func start(t testing.TB) clienttest.Server { return startedOn(t, redistest.Real(t)) }

func startedOn(t testing.TB, s *redistest.Server) clienttest.Server {
	return clienttest.Server{
		Address: s.Addr,
		Stop:    func() { s.Stop(t) },
		Restart: func() { s.Restart(t) },
		Pause:   func() { s.Pause(t) },
		Resume:  func() { s.Resume(t) },
	}
}
