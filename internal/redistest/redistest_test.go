package redistest_test

import (
	"errors"
	"flag"
	"syscall"
	"testing"

	"github.com/gomodule/redigo/redis"
	"go.uber.org/goleak"

	"github.com/a2139e8d/latchkey/internal/memnet"
	"github.com/a2139e8d/latchkey/internal/redistest"
)

// TestMain checks that the cleanups of all tests have ended all goroutines.
func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "4") // most wait for servers
	goleak.VerifyTestMain(m)
}

func TestRestartIsEmpty(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		s.Do(t, "SET", "k", "v")
		sha, err := redis.String(s.Do(t, "SCRIPT", "LOAD", "return 1"), nil)
		if err != nil {
			t.Fatal(err)
		}
		s.Stop(t)
		if _, err := memnet.DialContext(t.Context(), "tcp", s.Addr); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial after Stop: %v, want refusal", err)
		}
		s.Restart(t)
		if keys := s.Keys(t); len(keys) != 0 {
			t.Errorf("restarted with keys %q", keys)
		}
		if got := s.Do(t, "SCRIPT", "EXISTS", sha).([]any)[0]; got != int64(0) {
			t.Error("restarted with the old scripts")
		}
		s.Do(t, "SET", "k", "v", "PX", 30)
		redistest.Eventually(t, "expiry after restart", func() bool { return !s.Exists(t, "k") })
		s.Restart(t) // without Stop
		s.Stop(t)
		s.Stop(t) // twice
	})
}
