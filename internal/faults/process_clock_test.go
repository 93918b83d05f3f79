package faults

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/overlay"
)

// clockwork is the demo with a clock that can be set: POST /clock, form field ahead. It shifts time.Now in the
// whole process. As with a real clock, timers and durations are not affected.
var clockwork = demotest.Variant{Edits: []overlay.Edit{
	overlay.Append("$GOROOT/src/time/shift.go", `package time

import "sync/atomic"

// Shift is how many seconds the clock is ahead.
var Shift atomic.Int64
`),
	overlay.In("$GOROOT/src/time", "Now").After("s, n, m := runtimeNow()", "s += Shift.Load()"),
	overlay.In("cmd/demo", "newApp").Before(`m.HandleFunc("GET /info", h)`, `m.HandleFunc("POST /clock", func(_ http.ResponseWriter, req *http.Request) {
	var ahead int64
	fmt.Sscan(req.FormValue("ahead"), &ahead)
	time.Shift.Store(ahead)
})`),
}}

// setClock sets the clock of a process, and checks it in the next response.
func (s *scene) setClock(of *demotest.Demo, ahead time.Duration) {
	s.Helper()
	g := s.guestWith("")
	g.ask(of, http.MethodPost, "/clock", url.Values{"ahead": {fmt.Sprint(int64(ahead.Seconds()))}})
	res, err := g.http.Get(of.URL + "/info")
	if err != nil {
		s.Fatal(err)
	}
	res.Body.Close()
	date, err := http.ParseTime(res.Header.Get("Date"))
	if off := time.Until(date) - ahead; err != nil || off.Abs() > time.Minute {
		s.Fatalf("the clock must be %v ahead, and says %v, %v", ahead, date, err)
	}
}

// Clocks jump by half a day, forward and back, and differ by almost a day, which is the lifetime of a
// session. No session ends and no lock is free too early: Redis measures the leases.
func TestClocksJump(t *testing.T) {
	clockwork.Build(t)
	s := stage(t, "the clocks of processes jump by 11 h, forward and back, and differ by 22 h",
		"nothing lost, no lock opens early", setting{logins: true, demos: 1, lease: patient})
	const work = 700 * time.Millisecond
	one, two := s.addVariant(&clockwork, "-work", work.String()), s.addVariant(&clockwork)
	s.run(func(context.Context) {
		const jump = 11 * time.Hour
		for i, ahead := range []struct{ one, two time.Duration }{{jump, 0}, {jump, -jump}, {-jump, jump}, {0, 0}} {
			h := s.hold(one, "early")
			s.setClock(one, ahead.one)
			s.setClock(two, ahead.two)
			h.mustSet([]*demotest.Demo{two, s.demos[0]}[i%2], "late")
			// If the holder believed that its lease had expired, its work would end at once.
			if got := <-h.replies; got.status != http.StatusOK || got.took < work {
				t.Errorf("the holder while clocks jumped was answered with %d after %v of %v", got.status, got.took, work)
			}
			h.mustHave(one, "early", "late")
			h.mustHave(two, "early", "late")
		}
	})
}

// The clocks of two processes are three hours off, in opposite directions. A user has a session that ends in two hours,
// and logs in at each process. All sessions are on the list, and an EndAll ends them all, whichever process does it.
func TestClocksApartAndAUsersSessions(t *testing.T) {
	clockwork.Build(t)
	s := stage(t, "the clocks of processes are 3 h apart, and a user logs in at each", "P14: all are listed, and ended", setting{slack: 4 * slack})
	s.run(func(context.Context) {
		right, ahead, behind := s.demos[0], s.startVariant(&clockwork), s.startVariant(&clockwork)
		for i, by := range []*demotest.Demo{right, behind} {
			user := fmt.Sprint("user", i)
			s.setClock(behind, -22*time.Hour)
			members := []*guest{s.member(behind, user)}
			s.setClock(ahead, 3*time.Hour)
			s.setClock(behind, -3*time.Hour)
			for _, d := range []*demotest.Demo{ahead, behind, right, ahead} {
				members = append(members, s.member(d, user))
			}
			members[3].mustEndAll(by, right, len(members))
			for _, g := range members {
				g.must("a read after it", g.get(right, "/count"), 200, "0")
			}
		}
	})
}

// The clock of one process jumps past the lifetime of all sessions, and back. Meanwhile the sessions count as
// ended there, by P12. They are not damaged, and come back.
func TestClockPastLifetime(t *testing.T) {
	clockwork.Build(t)
	s := stage(t, "the clock of a process jumps past the lifetime of sessions, and back", "P12: expired by that clock, and not harmed", setting{logins: true})
	s.run(func(context.Context) {
		wrong, right := s.startVariant(&clockwork), s.demos[0]
		g, future := s.guest(right), s.guest(right)
		for i := range 3 {
			// The cookie is younger than the session, so the age in the record decides.
			s.setClock(wrong, 2*time.Hour)
			g.login(wrong)
			g.mustSet(wrong, fmt.Sprint("w", i))
			g.mustSet(right, fmt.Sprint("r", i))
			stored := s.recordWith("param_r0")

			s.setClock(wrong, 25*time.Hour)
			g.mustHave(wrong)
			future.begin(wrong)
			g.must("the first write of a new session", g.post(wrong, "/incr"), http.StatusOK, "1")
			if after := s.recordWith("param_r0"); after != stored {
				t.Errorf("the record was %q and is %q", stored, after)
			}
			future.mustSet(right, "future") // a session from tomorrow
			s.setClock(wrong, 0)
			future.mustHave(wrong, "future")
		}
		g.mustHave(wrong, "r0", "r1", "r2", "w0", "w1", "w2")
		g.mustHave(right, "r0", "r1", "r2", "w0", "w1", "w2")
	})
}
