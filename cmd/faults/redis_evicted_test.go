package faults

import (
	"context"
	"net/http"
	"slices"
	"testing"
)

// One key goes while a request holds the session: somebody deletes it, or Redis evicts
// it. What the request had in mind to save must not undo what others did meanwhile.
func TestKeyEvictedWhileHeld(t *testing.T) {
	fence := "P3: the save of the first holder is refused"
	stale := func(h *holding, s *scene, second <-chan reply) {
		if second == nil {
			second = h.setting(s.demos[1], "second")
		}
		h.must("the save of the second holder", <-second, http.StatusOK, "ok")
		h.must("the save of the first holder", <-h.replies, http.StatusServiceUnavailable, "")
		h.mustHave(s.demos[0], "second")
	}
	for _, one := range []struct {
		name, promise string
		keys          func(h *holding) []any
		then          func(h *holding, s *scene, second <-chan reply)
	}{
		{"lock", fence, func(h *holding) []any { return []any{h.lock} }, stale},
		{"lock and queue", fence, func(h *holding) []any { return []any{h.lock, h.lock + ".queue"} }, stale},
		{"record and lock", "the visitor is logged out, for good", func(h *holding) []any { return []any{h.record, h.lock} },
			func(h *holding, s *scene, _ <-chan reply) {
				h.mustBeForgotten(s.demos[1])
				h.must("the save of the holder", <-h.replies, http.StatusServiceUnavailable, "")
				h.mustBeForgotten(s.demos[1])
			}},
		// That is how to log a visitor out: nobody saves the session again.
		{"record", "the visitor is logged out, for good", func(h *holding) []any { return []any{h.record} },
			func(h *holding, s *scene, _ <-chan reply) {
				h.must("the save of the holder", <-h.replies, http.StatusServiceUnavailable, "")
				h.mustBeForgotten(s.demos[0])
				h.mustBeForgotten(s.demos[1])
			}},
	} {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			s := stage(t, one.name+" of a held session deleted", one.promise, setting{flags: []string{"-work", "800ms"}})
			s.suffer(func(context.Context) {
				h := s.hold(s.demos[0], "first")
				keys := one.keys(h)
				var second <-chan reply
				if slices.Contains(keys, any(h.lock+".queue")) { // there is one if somebody waits
					second = h.setting(s.demos[1], "second")
					eventually(t, lockWait, "another one waits", func() bool { return s.redis.Exists(t, h.lock+".queue") })
				}
				if n := s.redis.Do(t, "DEL", keys...).(int64); n != int64(len(keys)) {
					t.Errorf("there were only %d of the keys to delete", n)
				}
				one.then(h, s, second)
			})
		})
	}
}

// Whoever waits for a session is in its queue. When that is gone, nobody is told when
// the session is free, and those who wait must find out.
func TestQueuesEvicted(t *testing.T) {
	t.Parallel()
	s := stage(t, "all queues deleted again and again", "P5, P6: the next one notices by itself", setting{logins: true, demos: 3})
	s.suffer(func(ctx context.Context) {
		deleted := 0
		eventually(t, 2*lockWait, "20 queues are deleted", func() bool {
			deleted += s.deleteAll(".queue")
			return deleted >= 20
		})
	})
	s.allAnswered()
}

// All locks go, again and again, whoever holds them.
func TestLocksDeleted(t *testing.T) {
	t.Parallel()
	s := stage(t, "all locks deleted again and again", "P3: a holder may be refused; nothing lost", setting{logins: true, demos: 3})
	s.suffer(func(ctx context.Context) {
		deleted := 0
		eventually(t, 2*lockWait, "100 locks are deleted", func() bool {
			deleted += s.deleteAll(".lock")
			return deleted >= 100
		})
		s.mustHaveLogged("lock was lost")
	})
}

// deleteAll deletes all keys with a suffix, and returns how many there were.
func (s *scene) deleteAll(suffix string) int {
	const script = `
		local found = redis.call('KEYS', '*' .. ARGV[1])
		return #found > 0 and redis.call('DEL', unpack(found)) or 0`
	return int(s.redis.Do(s.T, "EVAL", script, 0, suffix).(int64))
}
