package faults

import (
	"context"
	"net/http"
	"testing"
	"time"
)

// Redis is full and evicts nothing: it refuses writes, and continues to answer reads. A
// holder that cannot save releases the session all the same, at once. Who logs out is out.
func TestOutOfMemory(t *testing.T) {
	s := stage(t, "Redis full for 1.5 s, noeviction", "P8: writes are 503, reads and logouts go on; nothing lost",
		setting{logins: true, apart: true, flags: []string{"-work", "800ms"}})
	s.run(func(ctx context.Context) {
		g := s.guest(s.demos[0])
		g.must("a write before", g.post(s.demos[0], "/incr"), http.StatusOK, "1")
		leaving := s.guest(s.demos[0])
		leaving.must("a write before", leaving.post(s.demos[0], "/incr"), http.StatusOK, "1")
		h := s.hold(s.demos[0], "held")
		s.redis.Do(t, "CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", 1)
		h.must("the save of a holder", <-h.replies, http.StatusServiceUnavailable, "")
		if s.redis.Exists(t, h.lock) {
			t.Error("the session was not released")
		}
		for range 12 {
			g.must("a write", g.post(s.demos[0], "/incr"), http.StatusServiceUnavailable, "")
			g.must("a read", g.get(s.demos[1], "/count"), http.StatusOK, "1")
			pause(ctx, 100*time.Millisecond)
		}
		leaving.must("a logout", leaving.post(s.demos[1], "/logout"), http.StatusNoContent, "")
		leaving.must("the old cookie", leaving.get(s.demos[0], "/count"), http.StatusOK, "0")
		s.redis.Do(t, "CONFIG", "SET", "maxmemory", 0)
		g.must("a write after that", g.post(s.demos[0], "/incr"), http.StatusOK, "2")
		s.mustHaveLogged("OOM")
	})
}
