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

// Redis is killed again and again, and rarely away for as long as a time-out.
func TestRedisFlapping(t *testing.T) {
	s := stage(t, "Redis killed six times in a row, appendfsync always", "P1, P8: nothing lost, back by itself",
		setting{redis: withLog(t.TempDir(), "always"), logins: true})
	random := chance(1)
	s.run(func(ctx context.Context) {
		for range 6 {
			s.redis.Restart(t)
			pause(ctx, time.Duration(50+random.IntN(250))*time.Millisecond)
		}
	})
}

// Redis is emptied while requests hold sessions. Their locks are lost, so none of them
// brings its session back.
func TestFlushAll(t *testing.T) {
	s := stage(t, "FLUSHALL while a session is held", "the holder is refused; all sessions are gone, for good",
		setting{losing: true, flags: []string{"-work", "800ms"}})
	var old []string
	s.run(func(context.Context) {
		h := s.hold(s.demos[0], "held")
		from := time.Now()
		old = records(t, s.redis)
		s.redis.Do(t, "FLUSHALL")
		for _, v := range s.visitors {
			v.Forgot(from, time.Now())
		}
		h.must("the save of a holder", <-h.replies, http.StatusServiceUnavailable, "")
		h.mustBeForgotten(s.demos[1])
	})
	for _, key := range records(t, s.redis) {
		if slices.Contains(old, key) {
			t.Errorf("%s is back", key)
		}
	}
	happened(t, "a visitor's request met no session", s.empties(), len(s.visitors))
	s.seen = fmt.Sprintf("%d sessions gone, %d requests met none", len(old), s.empties())
}

// Redis needs a while to read its log, and answers LOADING meanwhile. That costs waiting: within
// the timeout of an exchange it is asked again.
func TestRedisLoading(t *testing.T) {
	s := stage(t, "Redis killed and restarted, needs long to read its log", "P8: never an empty session", setting{logins: true,
		// The delay is in µs, for each command in the log.
		redis: append(withLog(t.TempDir(), "always"), "--key-load-delay", "100")})
	s.redis.Do(t, "EVAL", `for i = 1, 7000 do redis.call('SET', i, i) end`, 0)
	s.run(func(ctx context.Context) {
		began := time.Now()
		s.redis.Restart(t)
		loaded := time.Since(began).Round(time.Millisecond)
		happened(t, "Redis has put a command off", info(t, s.redis, "errorstat_LOADING:count="), 1)
		s.seen = fmt.Sprintf("loaded for %v", loaded)
	})
}
