package faults

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
)

// A key disappears while a request holds the session: it is deleted, Redis evicts it, or Redis's clock jumps past
// the lease. The request's save must not undo what other requests have done meanwhile.
func TestKeyEvictedWhileHeld(t *testing.T) {
	const promise = "P3: the save of the first holder is refused"
	const jump = patient + 5*time.Second // ended sessions leave something behind for a minute
	stale := func(h *holding, s *scene) {
		h.must("the save of the second holder", h.set(s.demos[1], "second"), http.StatusOK, "ok")
		h.must("the save of the first holder", <-h.replies, http.StatusServiceUnavailable, "")
		h.mustHave(s.demos[0], "second")
	}
	for fault, one := range map[string]struct {
		promise string
		happens func(h *holding, s *scene, m *rig.Machine)
	}{
		"lock of a held session deleted": {promise, func(h *holding, s *scene, _ *rig.Machine) {
			h.lose(h.lock)
			stale(h, s)
		}},
		"Redis's clock jumps 15 s forwards, past all leases": {promise, func(h *holding, s *scene, m *rig.Machine) {
			h.freeze()
			m.SetClock(jump)
			h.thaw()
			stale(h, s)
			s.mustHaveJumped(jump)
		}},
		// Deleting the record is a way to log a visitor out: the session is not saved again.
		"record of a held session deleted": {"the visitor is logged out, for good", func(h *holding, s *scene, _ *rig.Machine) {
			h.lose(h.record)
			h.must("the save of the holder", <-h.replies, http.StatusServiceUnavailable, "")
			h.mustBeForgotten(s.demos[0])
			h.mustBeForgotten(s.demos[1])
		}},
	} {
		t.Run(fault, func(t *testing.T) {
			m := rig.NewMachine(t)
			s := stage(t, fault, one.promise,
				setting{env: m.Env, flags: []string{"-work", "800ms"}, logins: true, lease: patient})
			s.run(func(context.Context) { one.happens(s.hold(s.demos[0], "first"), s, m) })
		})
	}
}

// Processes that wait for a session are in its queue. If the queue is gone, they are not notified when the
// session is free. They must find out by themselves.
func TestQueuesEvicted(t *testing.T) {
	s := stage(t, "all queues deleted again and again", "P5, P6: the next process notices by itself", setting{logins: true, demos: 3, lease: patient})
	const script = `
		local found = redis.call('KEYS', '*.queue')
		return #found > 0 and redis.call('DEL', unpack(found)) or 0`
	s.run(func(context.Context) {
		left := int64(20)
		eventually(t, 2*lockWait, "20 queues are deleted", func() bool {
			left -= s.redis.Do(t, "EVAL", script, 0).(int64)
			return left <= 0
		})
	})
	s.allAnswered()
}

// The keys of a user are evicted or deleted. Then all of that user's sessions have ended, even one that is held,
// and none comes alive again with the next login. Without the mark, they end at once in all processes. Without
// the list, they end when a request asks for it. Other users are not affected.
func TestKeysOfAUserEvicted(t *testing.T) {
	for _, one := range []struct {
		name     string
		suffixes []string
		held     bool
	}{
		{"mark of a user", []string{".user"}, true},
		{"list of a user", []string{".list"}, false},
		{"mark and list of a user", []string{".user", ".list"}, true},
	} {
		t.Run(one.name, func(t *testing.T) {
			s := stage(t, one.name+" deleted", "P14: all sessions of the user are ended, and no other",
				setting{flags: []string{"-work", "300ms"}, visitors: 2, slack: 4 * slack, lease: patient})
			s.run(func(context.Context) {
				ann, anns, bob := s.member(s.demos[0], "ann"), s.member(s.demos[1], "ann"), s.member(s.demos[0], "bob")
				h := s.holdAs(ann, s.demos[0], "held")
				tag, _, _ := strings.Cut(h.record, "}")
				var keys []any
				for _, suffix := range one.suffixes {
					keys = append(keys, tag+"}"+suffix)
				}
				h.lose(keys...)
				if one.held {
					h.must("the save of the holder", <-h.replies, http.StatusConflict, "")
				} else {
					h.must("the save of the holder", <-h.replies, http.StatusOK, "ok")
					anns.must("a read before anybody asks for the list", anns.get(s.demos[0], "/count"), 200, "1")
					if page := anns.get(s.demos[1], "/devices").text; strings.Contains(page, "card device") {
						t.Error("a session is listed")
					}
				}
				everywhere := func(when, annsCount string) {
					t.Helper()
					for _, d := range s.demos {
						ann.must("ann's read "+when, ann.get(d, "/count"), 200, annsCount)
						anns.must("ann's other read "+when, anns.get(d, "/count"), 200, annsCount)
						bob.must("bob's read "+when, bob.get(d, "/count"), 200, "1")
					}
				}
				everywhere("after it", "0")
				again := s.member(s.demos[1], "ann")
				everywhere("after the next login", "0")
				again.mustEndAll(s.demos[0], s.demos[1], 1)
				bob.mustEndAll(s.demos[1], s.demos[0], 1)
			})
		})
	}
}
