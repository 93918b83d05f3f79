package faults

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

// The keys of a user are evicted, or deleted by somebody. All of that user's sessions are over,
// also one that is held, and none comes alive again with the next login. Without the mark that is
// at once, on all processes; without the list, when somebody asks for it. Other users notice nothing.
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
			s := stage(t, one.name+" deleted", "P14: all out, none in; nobody else", setting{flags: []string{"-work", "300ms"}, visitors: 2, slack: 4 * slack})
			s.run(func(context.Context) {
				ann, anns, bob := s.member(s.demos[0], "ann"), s.member(s.demos[1], "ann"), s.member(s.demos[0], "bob")
				h := s.holdAs(ann, s.demos[0], "held")
				tag, _, _ := strings.Cut(h.record, "}")
				for _, suffix := range one.suffixes {
					if n := s.redis.Do(t, "DEL", tag+"}"+suffix).(int64); n != 1 {
						t.Fatalf("%d keys %s}%s are deleted", n, tag, suffix)
					}
				}
				if one.held {
					h.must("the save of the holder", <-h.replies, http.StatusServiceUnavailable, "")
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
