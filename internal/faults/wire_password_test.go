package faults

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

const password = "correct-horse-battery-staple"

// The password of one process is changed, and its connections are killed; then the
// password is changed back.
func TestWireWrongPassword(t *testing.T) {
	s := stage(t, "the password is changed for 2 s, connections killed", "P8, P11: 503 at once, back by itself, no secret told", setting{apart: true, demos: 1, logins: true})
	s.redis.Do(t, "ACL", "SETUSER", "app", "on", ">"+password, "~*", "&*", "+@all")
	d := s.add("redis://app:" + password + "@" + s.redis.Addr)
	g := s.guest(d)
	s.run(func(ctx context.Context) {
		s.redis.Do(t, "ACL", "SETUSER", "app", "resetpass", ">another")
		killed := s.redis.Do(t, "CLIENT", "KILL", "USER", "app").(int64)
		begun := time.Now()
		got := g.post(d, "/incr")
		within(t, "the answer with a wrong password", begun, time.Second)
		if got.status != http.StatusServiceUnavailable || strings.Contains(got.text, password) {
			t.Errorf("with a wrong password, a write was answered with %d %q", got.status, got.text)
		}
		pause(ctx, 2*time.Second)
		s.redis.Do(t, "ACL", "SETUSER", "app", "resetpass", ">"+password)
		s.seen = fmt.Sprintf("%d connections killed", killed)
		happened(t, "a connection was killed", int(killed), 1)
		g.must("with the password again", g.post(d, "/incr"), http.StatusOK, "1")
	})
	if !strings.Contains(d.Log(), "WRONGPASS") {
		t.Error("the log does not say what is wrong")
	}
	if strings.Contains(d.Log(), password) {
		t.Error("the log contains the password")
	}
}
