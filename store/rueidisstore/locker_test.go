package rueidisstore

import (
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/locksite"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/redis/rueidis"
)

// All locks keep the promises of a Locker over rueidis.
func TestLockers(t *testing.T) {
	t.Parallel()
	locksite.Run(t, nil, func(t testing.TB, address string, timeout time.Duration) transport.Client {
		return connected(t, redis2(address), timeout)
	})
}

// connected returns a client for tests whose timeouts may be too short for a first connection.
func connected(t testing.TB, o rueidis.ClientOption, timeout time.Duration) transport.Client {
	c := opened(t, o, timeout)
	eventually(t, "there is a connection", func() bool {
		_, err := c.maker.client(t.Context(), time.Now().Add(timeout))
		return err == nil
	})
	return c
}
