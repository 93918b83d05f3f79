package faults

import (
	"context"
	"fmt"
	"net/http"
	"testing"
)

// A key disappears while a request holds the session: someone deletes it, or Redis evicts
// it. What the request then saves must not undo what others have done meanwhile.
func TestKeyEvictedWhileHeld(t *testing.T) {
	fence := "P3: the save of the first holder is refused"
	stale := func(h *holding, s *scene) {
		h.must("the save of the second holder", h.set(s.demos[1], "second"), http.StatusOK, "ok")
		h.must("the save of the first holder", <-h.replies, http.StatusServiceUnavailable, "")
		h.mustHave(s.demos[0], "second")
	}
	for _, one := range []struct {
		name, promise string
		key           func(h *holding) string
		then          func(h *holding, s *scene)
	}{
		{"lock", fence, func(h *holding) string { return h.lock }, stale},
		// This is a way to log a visitor out: the session is not saved again.
		{"record", "the visitor is logged out, for good", func(h *holding) string { return h.record },
			func(h *holding, s *scene) {
				h.must("the save of the holder", <-h.replies, http.StatusServiceUnavailable, "")
				h.mustBeForgotten(s.demos[0])
				h.mustBeForgotten(s.demos[1])
			}},
	} {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			s := stage(t, one.name+" of a held session deleted", one.promise, setting{flags: []string{"-work", "800ms"}})
			s.run(func(context.Context) {
				h := s.hold(s.demos[0], "first")
				if s.redis.Do(t, "DEL", one.key(h)) != int64(1) {
					t.Error("there was nothing to delete")
				}
				one.then(h, s)
			})
		})
	}
}

// Processes that wait for a session are in its queue. When that is gone, they are not
// notified when the session is free, and must notice it by themselves.
func TestQueuesEvicted(t *testing.T) {
	t.Parallel()
	s := stage(t, "all queues deleted again and again", "P5, P6: the next one notices by itself", setting{logins: true, demos: 3})
	s.run(func(context.Context) { s.deleteMany(20, ".queue") })
	s.allAnswered()
}

// deleteMany deletes all keys with a suffix, again and again, until there were n.
func (s *scene) deleteMany(n int64, suffix string) {
	s.Helper()
	const script = `
		local found = redis.call('KEYS', '*' .. ARGV[1])
		return #found > 0 and redis.call('DEL', unpack(found)) or 0`
	eventually(s.T, 2*lockWait, fmt.Sprintf("%d keys of the kind %s are deleted", n, suffix), func() bool {
		n -= s.redis.Do(s.T, "EVAL", script, 0, suffix).(int64)
		return n <= 0
	})
}
