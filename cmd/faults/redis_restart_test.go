package faults

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"
)

// withLog returns the flags of a Redis that has a log in dir.
func withLog(dir, appendfsync string) []string {
	return []string{"--dir", dir, "--appendonly", "yes", "--appendfsync", appendfsync}
}

// Redis is killed again and again, hardly ever long enough away for a time-out.
func TestRedisFlapping(t *testing.T) {
	t.Parallel()
	s := stage(t, "Redis killed six times in a row, appendfsync always", "P1, P8: nothing lost, back by itself",
		setting{redis: withLog(t.TempDir(), "always"), logins: true})
	random := chance(1)
	s.suffer(func(ctx context.Context) {
		for range 6 {
			s.redis.Restart(t)
			pause(ctx, time.Duration(50+random.IntN(250))*time.Millisecond)
		}
	})
}

// A Redis without a log forgets all sessions. Visitors begin new ones, under new ids:
// an id that Redis does not know may be an attacker's.
func TestRedisKilledWithoutLog(t *testing.T) {
	t.Parallel()
	s := stage(t, "Redis killed and restarted, no log", "all sessions are gone, for good; P9: no old id is adopted",
		setting{losing: true})
	var old []string
	s.suffer(func(context.Context) {
		g := s.guest(s.demos[0])
		g.must("a write before", g.post(s.demos[0], "/incr"), http.StatusOK, "1")
		from := time.Now()
		s.redis.Pause(t) // so that the list is complete
		s.redis.Resume(t)
		old = records(t, s.redis)
		s.redis.Restart(t)
		s.forgotten(from, time.Now())
		g.mustBeForgotten(s.demos[1])
	})
	s.mustStayAway(old)
}

// Somebody empties Redis while requests hold sessions. What they hold is lost, since
// the lock is, so none of them brings its session back.
func TestFlushAll(t *testing.T) {
	t.Parallel()
	s := stage(t, "FLUSHALL while a session is held", "the holder is refused; all sessions are gone, for good",
		setting{losing: true, flags: []string{"-work", "800ms"}})
	var old []string
	s.suffer(func(context.Context) {
		h := s.hold(s.demos[0], "held")
		from := time.Now()
		old = records(t, s.redis)
		s.redis.Do(t, "FLUSHALL")
		s.forgotten(from, time.Now())
		h.must("the save of whoever held a session", <-h.replies, http.StatusServiceUnavailable, "")
		h.mustBeForgotten(s.demos[1])
	})
	s.mustStayAway(old)
}

// forgotten says that Redis forgot all sessions at a time between two moments.
func (s *scene) forgotten(from, to time.Time) {
	for _, v := range s.visitors {
		v.Forgot(from, to)
	}
}

// mustStayAway asserts that none of the keys is there again, and that visitors have
// noticed that they were gone.
func (s *scene) mustStayAway(keys []string) {
	s.Helper()
	for _, key := range records(s.T, s.redis) {
		if slices.Contains(keys, key) {
			s.Errorf("%s is back", key)
		}
	}
	empties := s.empties()
	if len(keys) == 0 || empties < len(s.visitors) {
		s.Errorf("%d sessions were there, and %d answers came without", len(keys), empties)
	}
	s.seen = fmt.Sprintf("%d sessions gone, %d requests met none", len(keys), empties)
}

// Redis needs a while to read its log, and says LOADING meanwhile.
func TestRedisLoading(t *testing.T) {
	t.Parallel()
	s := stage(t, "Redis killed and restarted, needs long to read its log", "P8: never an empty session", setting{logins: true,
		// Each command in the log takes so many µs more.
		redis: append(withLog(t.TempDir(), "always"), "--key-load-delay", "100")})
	s.redis.Do(t, "EVAL", `for i = 1, 7000 do redis.call('SET', i, i) end`, 0)
	s.suffer(func(ctx context.Context) {
		began := time.Now()
		s.redis.Restart(t)
		s.mustHaveLogged("LOADING")
		s.seen = fmt.Sprintf("loaded for %v", time.Since(began).Round(time.Millisecond))
	})
}
