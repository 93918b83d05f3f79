package locker_test

import (
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker"
	"github.com/gomodule/redigo/redis"
)

// A lock is small, and does not stay: a Redis that is full gives it out all the same.
func TestLocksOnAFullRedis(t *testing.T) {
	t.Parallel()
	for name, m := range family {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var pools []*redis.Pool
			for range m.nodes {
				server := redistest.Real(t)
				server.Fill(t)
				pools = append(pools, server.Pool(t, 4))
			}
			locks := m.lock(pools, locker.Options{})
			for range 2 {
				lease, err := locks.Lock(t.Context(), "k")
				if err != nil {
					t.Fatal(err)
				}
				if err := lease.Extend(t.Context(), locker.DefaultLease); err != nil {
					t.Error(err)
				}
				if err := lease.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
