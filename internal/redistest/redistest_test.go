package redistest_test

import (
	"errors"
	"flag"
	"slices"
	"syscall"
	"testing"

	"github.com/gomodule/redigo/redis"
	"go.uber.org/goleak"

	"github.com/a2139e8d/latchkey/internal/memnet"
	"github.com/a2139e8d/latchkey/internal/redistest"
)

// TestMain checks that every test's cleanups ended every goroutine.
func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "4") // most wait for servers
	goleak.VerifyTestMain(m)
}

func TestReads(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		s.Do(t, "SET", "b", "2")
		s.Do(t, "SET", "a", "1")
		if got, ok := s.Get(t, "a"); got != "1" || !ok {
			t.Errorf("Get(a) = %q, %v", got, ok)
		}
		if got, ok := s.Get(t, "c"); got != "" || ok {
			t.Errorf("Get(c) = %q, %v", got, ok)
		}
		if !s.Exists(t, "a") || s.Exists(t, "c") {
			t.Error("Exists is wrong about a or c")
		}
		if got, want := s.Keys(t), []string{"a", "b"}; !slices.Equal(got, want) {
			t.Errorf("Keys() = %q, want %q", got, want)
		}
		if s.IsReal() != (s.Socket() != "") {
			t.Error("IsReal and Socket disagree")
		}
	})
}

// An embedded server is reached as a real one is.
func TestEmbedded(t *testing.T) {
	t.Parallel()
	s := redistest.Embedded(t)
	c, err := redis.DialURL(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	s.Do(t, "SET", "k", "v", "PX", 30)
	redistest.Eventually(t, "expiry", func() bool { return !s.Exists(t, "k") })
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

func TestPause(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	c := s.Pool(t, 1).Get()
	defer c.Close()
	s.Pause(t)
	wantSilence(t, c)
	s.Resume(t)
	redistest.Eventually(t, "late SET", func() bool { return s.Exists(t, "k") })
	s.Pause(t) // and let the cleanup kill it like this
}
