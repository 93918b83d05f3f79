package faults

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
)

// Redis's clock jumps backwards, which makes all leases longer. That matters only where a
// holder was killed: others extend or release their locks as before. A request waits for
// LockWait and no longer.
func TestClockJumpsBackwards(t *testing.T) {
	const wait, back = 2 * time.Second, 3 * time.Second
	m := rig.NewMachine(t)
	s := stage(t, "Redis's clock jumps 3 s backwards, a holder killed", "P5: 503 after LockWait; P7: shut for lease + 3 s",
		setting{env: m.Env, flags: []string{"-work", "800ms", "-lock-wait", wait.String()}, logins: true})
	s.run(func(ctx context.Context) {
		killed := s.add(s.redis.URL)
		s.close(killed)
		h := s.hold(killed, "first")
		killed.Kill()
		began := time.Now()
		m.SetClock(-back)
		got := h.set(s.demos[0], "waited")
		h.must("a request that waits", got, http.StatusServiceUnavailable, "")
		if got.took < wait || got.took > wait+2*time.Second+lateSince(began) {
			t.Errorf("a request waited %v, not %v", got.took, wait)
		}
		eventually(t, 2*(lease+back), "the lock has expired", func() bool { return !s.redis.Exists(t, h.lock) })
		shut := time.Since(began)
		h.must("a request that comes later", h.set(s.demos[0], "second"), http.StatusOK, "ok")
		if shut < back || shut > lease+back+2*time.Second+lateSince(began) {
			t.Errorf("the session was shut for %v", shut)
		}
		s.seen = fmt.Sprintf("shut for %v", shut.Round(time.Millisecond))
		s.mustHaveJumped(-back)
	})
}

// mustHaveJumped asserts by how much Redis's clock is wrong.
func (s *scene) mustHaveJumped(by time.Duration) {
	s.Helper()
	times := s.redis.Do(s.T, "TIME").([]any)
	var unix int64
	_, _ = fmt.Sscan(strings.TrimSpace(string(times[0].([]byte))), &unix)
	if off := time.Until(time.Unix(unix, 0)) - by; off.Abs() > 2*time.Second {
		s.Errorf("Redis's clock is %v ahead, not %v", off+by, by)
	}
}
