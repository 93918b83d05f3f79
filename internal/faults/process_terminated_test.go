package faults

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/a2139e8d/latchkey/internal/demotest"
)

// Both processes get SIGTERM, one after the other, each while it holds sessions and waits
// for one. They answer all requests that have begun, and leave no lock behind.
func TestAppsTerminatedInTurn(t *testing.T) {
	s := stage(t, "processes terminated in turn", "what was begun is answered; no lock is left", setting{logins: true, flags: []string{"-work", "1s"}})
	var answered int
	s.run(func(context.Context) {
		first, second := s.demos[0], s.demos[1]
		answered += s.terminate(first, second)
		third := s.add(s.redis.URL)
		answered += s.terminate(second, third)
	})
	s.seen = fmt.Sprintf("all %d requests that had begun were answered", answered)
}

// terminate ends a process and returns how many requests it was serving.
func (s *scene) terminate(d, other *demotest.Demo) (answered int) {
	s.Helper()
	guests := make([]*guest, 8)
	for i := range guests {
		guests[i] = s.guest(d)
	}
	// One waits for a session that the other process holds; the others hold theirs.
	elsewhere := s.hold(other, "held")
	waits := elsewhere.setting(d, "waited")
	eventually(s.T, s.longest, "one waits", func() bool { return s.redis.Exists(s.T, elsewhere.lock+".queue") })
	var here []*holding
	for _, g := range guests {
		here = append(here, s.holdAs(g, d, "held"))
	}
	d.Signal(s.T, syscall.SIGTERM)
	s.close(d)
	for _, h := range here {
		h.must("a request that had begun", <-h.replies, http.StatusOK, "ok")
		h.mustHave(other, "held")
	}
	elsewhere.must("the holder in the other process", <-elsewhere.replies, http.StatusOK, "ok")
	elsewhere.must("the request that waited", <-waits, http.StatusOK, "ok")
	elsewhere.mustHave(other, "held", "waited")
	s.mustHaveEnded(d)
	return len(here) + 1
}

// mustHaveEnded asserts that a process ends after SIGTERM, and leaves no lock.
func (s *scene) mustHaveEnded(d *demotest.Demo) {
	s.Helper()
	if err := d.Wait(s.T, s.longest); err != nil {
		s.Errorf("it ended with %v", err)
	}
	if left := s.locks(d); len(left) > 0 {
		s.Errorf("it has left %s", strings.Join(left, ", "))
	}
}

// locks returns the keys of a process's locks.
func (s *scene) locks(of *demotest.Demo) (keys []string) {
	s.Helper()
	for _, key := range guards(s.T, s.redis) {
		if !strings.HasSuffix(key, ".lock") {
			continue
		}
		if token, _ := s.redis.Get(s.T, key); strings.Contains(token, fmt.Sprintf("/%d ", of.PID())) {
			keys = append(keys, key)
		}
	}
	return keys
}

// replace ends a process that another has replaced, as a rolling restart does.
func (s *scene) replace(old *demotest.Demo) {
	s.Helper()
	s.close(old)
	old.Signal(s.T, syscall.SIGTERM)
	s.mustHaveEnded(old)
}
