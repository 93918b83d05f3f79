package faults

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// Redis closes all connections, including subscriptions. Where a reply is lost, the client
// cannot know whether the command was executed.
func TestClientKill(t *testing.T) {
	t.Parallel()
	s := stage(t, "CLIENT KILL of all connections, 15 times", "P1, P8: nothing lost, back by itself", setting{logins: true})
	random := chance(2)
	s.run(func(ctx context.Context) {
		killed := int64(0)
		for range 15 {
			for _, kind := range []string{"normal", "pubsub"} {
				killed += s.redis.Do(t, "CLIENT", "KILL", "TYPE", kind).(int64)
			}
			pause(ctx, time.Duration(10+random.IntN(60))*time.Millisecond)
		}
		s.seen = fmt.Sprintf("%d connections", killed)
		if killed < 15 {
			t.Errorf("only %d connections were killed", killed)
		}
	})
}

// Redis has as many clients as it may have: it refuses new ones with an error.
func TestMaxClients(t *testing.T) {
	t.Parallel()
	s := stage(t, "Redis at maxclients for 1.5 s", "P8: 503, back by itself", setting{logins: true, apart: true})
	s.run(func(ctx context.Context) {
		before := s.stat("rejected_connections")
		s.redis.Do(t, "CONFIG", "SET", "maxclients", 1)
		for range 15 {
			// All but the test's own connection.
			s.redis.Do(t, "CLIENT", "KILL", "TYPE", "normal")
			s.redis.Do(t, "CLIENT", "KILL", "TYPE", "pubsub")
			pause(ctx, 100*time.Millisecond)
		}
		rejected := s.stat("rejected_connections") - before
		s.redis.Do(t, "CONFIG", "SET", "maxclients", 10000)
		s.seen = fmt.Sprintf("%d connections refused", rejected)
		if rejected == 0 {
			t.Error("Redis has refused no connection")
		}
		s.mustHaveLogged("max number of clients")
	})
}
