package redistest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/fakeredis"
	"github.com/a2139e8d/latchkey/internal/memnet"
	"github.com/gomodule/redigo/redis"
)

// timeout bounds every step of a client, so that a silent server fails a test soon. Do is patient, since one command may
// do much.
const timeout = 2 * time.Second

func dial(network, addr string, timeout time.Duration) (redis.Conn, error) {
	return redis.Dial(network, addr,
		redis.DialContextFunc(memnet.DialContext),
		redis.DialConnectTimeout(timeout),
		redis.DialReadTimeout(timeout),
		redis.DialWriteTimeout(timeout))
}

// newPool makes a pool of at most size connections; callers wait for a free one.
func newPool(tb testing.TB, addr string, size int) *redis.Pool {
	pool := &redis.Pool{
		Dial:      func() (redis.Conn, error) { return dial("tcp", addr, timeout) },
		MaxIdle:   size,
		MaxActive: size,
		Wait:      true,
	}
	tb.Cleanup(func() { pool.Close() })
	return pool
}

// newAdminPool makes the pool behind Do. It probes idle connections: those opened before a Restart are
// broken, and must not fail a test that only looks at the data.
func newAdminPool(tb testing.TB, addr string) *redis.Pool {
	pool := &redis.Pool{
		Dial:    func() (redis.Conn, error) { return dial("tcp", addr, patience) },
		MaxIdle: 4,
		TestOnBorrow: func(c redis.Conn, _ time.Time) error {
			_, err := c.Do("PING")
			return err
		},
	}
	tb.Cleanup(func() { pool.Close() })
	return pool
}

// Pool returns a pool of at most size connections to s, closed when the test
// ends.
func (s *Server) Pool(tb testing.TB, size int) *redis.Pool {
	tb.Helper()
	return newPool(tb, s.Addr, size)
}

// Do runs one command, bypassing any proxy or pool under test, and returns its reply. Several goroutines
// may call it at once.
func (s *Server) Do(tb testing.TB, cmd string, args ...any) any {
	tb.Helper()
	c := s.admin.Get()
	defer c.Close()
	reply, err := c.Do(cmd, args...)
	if err != nil {
		tb.Fatalf("redistest: %s: %v", cmd, err)
	}
	return reply
}

// Get returns the string at key, and whether there is one.
func (s *Server) Get(tb testing.TB, key string) (string, bool) {
	tb.Helper()
	value, err := redis.String(s.Do(tb, "GET", key), nil)
	if err != nil && !errors.Is(err, redis.ErrNil) {
		tb.Fatalf("redistest: GET %s: %v", key, err)
	}
	return value, err == nil
}

// Exists reports whether a key exists.
func (s *Server) Exists(tb testing.TB, key string) bool {
	tb.Helper()
	return s.Do(tb, "EXISTS", key) == int64(1)
}

// Keys returns all keys, sorted. KEYS blocks the server while it lists the keys, so this is for tests
// only.
func (s *Server) Keys(tb testing.TB) []string {
	tb.Helper()
	if _, ok := s.backend.(*memory); ok {
		var keys []string
		s.Fake(func(r *fakeredis.Server) { keys = r.Keys(time.Now()) })
		return keys
	}
	keys, err := redis.Strings(s.Do(tb, "KEYS", "*"), nil)
	if err != nil {
		tb.Fatalf("redistest: KEYS: %v", err)
	}
	slices.Sort(keys)
	return keys
}
