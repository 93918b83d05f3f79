package locker_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker"
	"github.com/gomodule/redigo/redis"
)

// A lock is free again: a second holder had it, and has released it. Redis remembers nothing of that. So the first
// holder learns that its lease has expired, but not that it was alone.
func TestExpiredDoesNotMeanAlone(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]func([]*redis.Pool, locker.Options) locker.Locker{"Spin": spin, "Timestamp": timestamp, "Redlock": redlock} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Real(t)
			pools := []*redis.Pool{server.Pool(t, 4)}
			o := locker.Options{Lease: time.Minute, Timeout: 15 * time.Second}
			first, err := lock(pools, o).Lock(t.Context(), "k")
			if err != nil {
				t.Fatal(err)
			}
			server.Do(t, "DEL", "k") // the lease has expired
			second, err := lock(pools, o).Lock(t.Context(), "k")
			if err == nil {
				err = second.Unlock(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			for what, err := range map[string]error{"Extend": first.Extend(t.Context(), time.Minute), "Unlock": first.Unlock(t.Context())} {
				if !errors.Is(err, locker.ErrExpired) || !strings.Contains(err.Error(), "nobody has it now") {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}
