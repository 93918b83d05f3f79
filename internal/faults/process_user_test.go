package faults

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/redistest"
)

// isEndAll reports whether a command ends all sessions of a user: its keys are the mark and the list. The first
// such command of a process only asks for the time, since the process does not know Redis's clock yet.
func isEndAll(c redistest.Command) bool {
	return isScript(c, "2") && len(c.Args) > 5 && strings.HasSuffix(c.Args[3], ".list") && c.Args[5] != "0"
}

// member returns a guest whose session belongs to a user, by a login on the demo's second page. The session has
// the number 1.
func (s *scene) member(d *demotest.Demo, user string) *guest {
	s.Helper()
	g := s.guest(d)
	g.must("a write", g.post(d, "/incr"), 200, "1")
	got := g.ask(d, "POST", "/devices/sign-in", url.Values{"name": {user}})
	if got.status != 303 || got.cookie == "" {
		s.Fatalf("a login was answered with %+v", got)
	}
	g.cookie = got.cookie
	g.must("the first request after the login", g.get(d, "/count"), 200, "1") // claims the session, so it stays on the user's list
	return g
}

// mustEndAll asserts how many sessions the guest's user has, ends them all, and checks that the guest's own has
// ended.
func (g *guest) mustEndAll(one, two *demotest.Demo, sessions int) {
	g.Helper()
	if n := strings.Count(g.get(one, "/devices").text, `<li class="card device"`); n != sessions {
		g.Errorf("%d sessions are listed, want %d", n, sessions)
	}
	g.must("an EndAll", g.post(one, "/devices/end-all"), 303, "")
	g.must("a read after it", g.get(two, "/count"), 200, "0")
}

// A process is killed while it ends all sessions of a user. Afterwards all of them are alive, or none is.
func TestAppKilledInEndAll(t *testing.T) {
	s := stage(t, "process killed in EndAll, its command in Redis, lost, or late", "P14: all sessions of the user, or none", setting{visitors: 2, slack: 4 * slack})
	s.run(func(context.Context) {
		// Redis gets the scripts for users now, so that the first command with a script runs it.
		s.member(s.demos[0], "nobody").mustEndAll(s.demos[0], s.demos[1], 1)
		for i, by := range []redistest.Fault{redistest.Hang, redistest.HangCommand} {
			user := fmt.Sprint("user", i)
			one, two := s.member(s.demos[0], user), s.member(s.demos[1], user)
			alive := map[bool]string{true: "1", false: "0"}
			s.killIn(by, isEndAll, func(doomed *demotest.Demo) { one.post(doomed, "/devices/end-all") }, s.hasNoList, func() {
				want := alive[by == redistest.HangCommand]
				one.must("a read", one.get(s.demos[1], "/count"), 200, want)
				two.must("a read", two.get(s.demos[0], "/count"), 200, want)
			})
			eventually(s.T, s.longest, "all are over, or the command came too late and none is", func() bool {
				return one.get(s.demos[1], "/count").text == two.get(s.demos[0], "/count").text
			})
			left := 1
			if by == redistest.HangCommand && one.get(s.demos[1], "/count").text == "1" {
				left = 3
			}
			s.member(s.demos[0], user).mustEndAll(s.demos[1], s.demos[0], left)
		}
	})
}

// killIn makes a process die at a command of do. The network holds back the command or its reply. A command that
// was held back arrives after while has run.
func (s *scene) killIn(by redistest.Fault, at func(redistest.Command) bool, do func(*demotest.Demo), executed func() bool, while func()) {
	s.Helper()
	proxy := redistest.NewProxy(s.T, s.redis)
	doomed := demotest.Start(s.T, "-redis", proxy.URL, "-lease", lease.String(), "-lock-wait", lockWait.String())
	caught := catch(proxy, death{at: at, by: by})
	done := make(chan struct{})
	go func() {
		do(doomed)
		close(done)
	}()
	<-caught
	if by == redistest.Hang {
		eventually(s.T, s.longest, "the command is executed", executed)
	}
	doomed.Kill()
	<-done
	while()
	proxy.Release()
}

// hasNoList reports whether no user has sessions.
func (s *scene) hasNoList() bool {
	return !slices.ContainsFunc(s.keys(), func(key string) bool { return strings.HasSuffix(key, ".list") })
}
