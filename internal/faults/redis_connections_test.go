package faults

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// Redis has as many clients as it may have: it closes all connections, including subscriptions, and
// refuses new ones with an error.
func TestMaxClients(t *testing.T) {
	s := stage(t, "Redis at maxclients for 1.5 s", "P8: 503, back by itself", setting{logins: true, apart: true})
	s.run(func(ctx context.Context) {
		before := info(t, s.redis, "rejected_connections:")
		s.redis.Do(t, "CONFIG", "SET", "maxclients", 1)
		for range 15 {
			// All but the test's own connection.
			s.redis.Do(t, "CLIENT", "KILL", "TYPE", "normal")
			s.redis.Do(t, "CLIENT", "KILL", "TYPE", "pubsub")
			pause(ctx, 100*time.Millisecond)
		}
		rejected := info(t, s.redis, "rejected_connections:") - before
		s.redis.Do(t, "CONFIG", "SET", "maxclients", 10000)
		s.seen = fmt.Sprintf("%d connections refused", rejected)
		happened(t, "Redis has refused a connection", rejected, 1)
		s.mustHaveLogged("max number of clients")
	})
}
