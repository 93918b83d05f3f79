package faults

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
)

// Redis does not reply for a while, as when its machine swaps.
func TestRedisPaused(t *testing.T) {
	s := stage(t, "Redis paused for 3 s", "P8: nothing lost, recovers by itself", setting{logins: true, apart: true})
	s.run(func(ctx context.Context) {
		s.redis.Pause(t)
		pause(ctx, 3*time.Second)
		s.redis.Resume(t)
	})
	happened(t, "a request was not answered", s.summary().Silent, 1)
}

// Redis pauses for less than a lease and than the timeout of a round trip. Requests wait, and none fails.
func TestRedisPausedShortly(t *testing.T) {
	const length = 2 * lease / 5
	s := stage(t, "Redis paused for 0.4 s, three times", "not noticed except for the wait", setting{logins: true, lease: patient})
	s.run(func(ctx context.Context) {
		for range 3 {
			s.redis.Pause(t)
			pause(ctx, length)
			s.redis.Resume(t)
			pause(ctx, lease/5)
		}
	})
	s.allAnswered()
	if longest := s.summary().Longest; longest < length {
		t.Errorf("no request took longer than %v", longest)
	}
}

// withLog returns the flags of a Redis that has a log in dir.
func withLog(dir, appendfsync string) []string {
	return []string{"--dir", dir, "--appendonly", "yes", "--appendfsync", appendfsync}
}

// Redis is killed again and again, but is rarely unavailable for as long as a timeout.
func TestRedisFlapping(t *testing.T) {
	s := stage(t, "Redis killed six times in a row, appendfsync always", "P1, P8: nothing lost, recovers by itself",
		setting{redis: withLog(t.TempDir(), "always"), logins: true})
	random := chance(1)
	s.run(func(ctx context.Context) {
		for range 6 {
			s.redis.Restart(t)
			pause(ctx, time.Duration(50+random.IntN(250))*time.Millisecond)
		}
	})
}

// Redis is emptied while requests hold sessions. Their locks are lost, so no request brings its session back.
func TestFlushAll(t *testing.T) {
	s := stage(t, "FLUSHALL while a session is held", "the holder is refused; all sessions are gone, for good",
		setting{losing: true, flags: []string{"-work", "800ms"}})
	var old []string
	s.run(func(context.Context) {
		h := s.hold(s.demos[0], "held")
		from := time.Now()
		old = recordKeys(t, s.redis)
		h.whileHeld("FLUSHALL")
		for _, v := range s.visitors {
			v.Forgot(from, time.Now())
		}
		h.must("the save of a holder", <-h.replies, http.StatusServiceUnavailable, "")
		h.mustBeForgotten(s.demos[1])
	})
	for _, key := range recordKeys(t, s.redis) {
		if slices.Contains(old, key) {
			t.Errorf("%s is back", key)
		}
	}
	happened(t, "a visitor's request met no session", s.empties(), len(s.visitors))
	s.seen = fmt.Sprintf("%d sessions gone, %d requests met none", len(old), s.empties())
}

// Redis needs a while to read its log, and replies LOADING meanwhile. Requests only wait, since a command is
// repeated within the timeout of its round trip.
func TestRedisLoading(t *testing.T) {
	s := stage(t, "Redis killed and restarted, with a log that takes long to load", "P8: never an empty session", setting{logins: true,
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

// Redis's clock jumps backwards, which makes all leases longer. That matters only if a holder was killed:
// other holders extend or release their locks as before. A request still waits for LockWait at most, which is much less
// than how long the session stays locked.
func TestClockJumpsBackwards(t *testing.T) {
	const wait, back = 1500 * time.Millisecond, 5 * time.Second
	m := rig.NewMachine(t)
	s := stage(t, "Redis's clock jumps 5 s backwards, a holder killed", "P5: 503 after LockWait; P7: locked for lease + 5 s",
		setting{env: m.Env, flags: []string{"-lock-wait", wait.String()}, logins: true, lease: patient})
	s.run(func(ctx context.Context) {
		var h *holding
		var began time.Time
		for left := time.Duration(0); left <= back; { // the lock had expired before the jump: the machine is busy
			m.SetClock(0)
			killed := s.add(s.redis.URL, "-lease", lease.String(), "-work", "1h")
			s.close(killed)
			h = s.hold(killed, "first")
			killed.Kill()
			began = time.Now()
			m.SetClock(-back)
			left = time.Duration(s.redis.Do(t, "PTTL", h.lock).(int64)) * time.Millisecond
		}
		got := h.set(s.demos[0], "waited")
		h.must("a request that waits", got, http.StatusServiceUnavailable, "")
		if got.took < wait || got.took > wait+2*time.Second+lateSince(began) {
			t.Errorf("a request waited %v, not %v", got.took, wait)
		}
		eventually(t, 2*(lease+back), "the lock has expired", func() bool { return !s.redis.Exists(t, h.lock) })
		shut := time.Since(began)
		h.must("a request that comes later", h.set(s.demos[0], "second"), http.StatusOK, "ok")
		if shut < back || shut > lease+back+2*time.Second+lateSince(began) {
			t.Errorf("the session was locked for %v", shut)
		}
		s.seen = fmt.Sprintf("locked for %v", shut.Round(time.Millisecond))
		s.mustHaveJumped(-back)
	})
}

// mustHaveJumped asserts by how much Redis's clock is wrong.
func (s *scene) mustHaveJumped(by time.Duration) {
	s.Helper()
	asked := time.Now()
	times := s.redis.Do(s.T, "TIME").([]any)
	var unix int64
	_, _ = fmt.Sscan(strings.TrimSpace(string(times[0].([]byte))), &unix)
	if off := time.Until(time.Unix(unix, 0)) - by; off.Abs() > 2*time.Second+time.Since(asked) {
		s.Errorf("Redis's clock is %v ahead, not %v", off+by, by)
	}
}
