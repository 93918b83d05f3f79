package rueidisstore

import (
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/a2139e8d/latchkey/locker/transport/clienttest"
	"github.com/redis/rueidis"
)

// A client over rueidis keeps all promises of a Client.
func TestClient(t *testing.T) {
	t.Parallel()
	clienttest.Run(t, clienttest.Kind{Open: open, Start: start, OneWrite: true})
}

func open(t testing.TB, address string, timeout time.Duration) transport.Client {
	return opened(t, rueidis.ClientOption{InitAddress: []string{address}}, timeout)
}

// openRESP2 is for what is behind a proxy of package redistest, which knows no RESP3.
func openRESP2(t testing.TB, address string, timeout time.Duration) transport.Client {
	return opened(t, redis2(address), timeout)
}

func redis2(address string) rueidis.ClientOption {
	return rueidis.ClientOption{InitAddress: []string{address}, AlwaysRESP2: true}
}

func opened(t testing.TB, o rueidis.ClientOption, timeout time.Duration) *client {
	t.Helper()
	c, err := newClient(o, timeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.maker.close)
	return c
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

// What has gone wrong on a connection ends with it: after Reset there is another.
func TestReset(t *testing.T) {
	t.Parallel()
	c := opened(t, at(redistest.Real(t)), patient.Timeout)
	before := do(t, c, "", transport.Command{"CLIENT", "ID"})[0]
	c.Reset()
	eventually(t, "there is another connection", func() bool {
		replies, err := c.Do(t.Context(), "", transport.Command{"CLIENT", "ID"})
		return err == nil && replies[0] != before
	})
}
