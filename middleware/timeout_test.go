package middleware_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// ASVS 7.1.1: The guide has the timeouts that a session has by default.
func TestTheDefaultTimeoutsAreAsDocumented(t *testing.T) {
	t.Parallel()
	guide := read(t, "README.md")
	for _, row := range []string{
		fmt.Sprintf(`\| .TTL. \| [^|]+ \| %.0f min \|`, records.DefaultTTL.Minutes()),
		fmt.Sprintf(`\| .Lifetime. \| [^|]+ \| %.0f h \|`, records.DefaultLifetime.Hours()),
	} {
		if !regexp.MustCompile(row).MatchString(guide) {
			t.Errorf("the guide has no %s", row)
		}
	}
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		s, v := begun(t, r, middleware.Options{}, app())
		began := time.Now()
		for time.Since(began) < records.DefaultLifetime-records.DefaultTTL {
			redistest.Elapse(records.DefaultTTL - time.Second)
			v.get(s.URL+"/get").want(t, 200, "1")
		}
		redistest.Elapse(records.DefaultLifetime - time.Since(began) - time.Second)
		v.get(s.URL+"/get").want(t, 200, "1")
		redistest.Elapse(2 * time.Second)
		v.get(s.URL+"/get").want(t, 200, "0")
		v.get(s.URL+"/add").want(t, 200, "1")
		redistest.Elapse(records.DefaultTTL + time.Second)
		v.get(s.URL+"/get").want(t, 200, "0")
	})
}

// P12, ASVS 7.3.1: A request that opens the session counts as use, even if it only reads, as a page that polls does.
// A request that does not open the session does not count.
func TestOnlyWhatOpensTheSessionKeepsItAlive(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		mux.HandleFunc("/lazy", func(http.ResponseWriter, *http.Request) {})
		mux.HandleFunc("/none", func(http.ResponseWriter, *http.Request) {})
		s := newSite(t, r.Pool(t, 4), middleware.Options{TTL: time.Hour, Mode: byPath(map[string]middleware.Mode{
			"/get": middleware.ReadOnly, "/lazy": middleware.Lazy, "/none": middleware.None,
		})}, mux)
		for path, extends := range map[string]bool{"/get": true, "/nothing": true, "/add": true, "/lazy": false, "/none": false} {
			v := s.visitor(t)
			redistest.Elapse(59 * time.Minute)
			v.get(s.URL+path).want(t, 200, "*")
			redistest.Elapse(59 * time.Minute)
			if alive := v.get(s.URL+"/len").body == "1"; alive != extends {
				t.Errorf("after %s the session is alive: %v", path, alive)
			}
		}
	})
}

// P12: a visitor who never pauses is logged out nevertheless.
func TestTheAbsoluteTimeoutCannotBeExtended(t *testing.T) {
	onEach(t, func(t *testing.T, r *redistest.Server) {
		s, v := begun(t, r, middleware.Options{
			TTL: time.Hour, Lifetime: 2 * time.Hour,
			Mode: byPath(map[string]middleware.Mode{"/get": middleware.ReadOnly}),
		}, app())
		id := v.get(s.URL + "/id").body
		for _, path := range []string{"/get", "/nothing", "/add"} {
			makeOlder(t, r, id, 119*time.Minute)
			r.Do(t, "PEXPIRE", recordOf(id), time.Minute.Milliseconds())
			v.get(s.URL+path).want(t, 200, "*")
			if left := r.Do(t, "PTTL", recordOf(id)).(int64); left > time.Minute.Milliseconds() {
				t.Errorf("after %s a session with a minute to live has %d ms", path, left)
			}
		}
		makeOlder(t, r, id, 2*time.Hour) // it is still in Redis
		v.get(s.URL+"/get").want(t, 200, "0")
		if a := v.get(s.URL + "/add"); a.body != "1" || !a.sets() {
			t.Errorf("an ended session was written to: %d %q", a.StatusCode, a.body)
		}
	})
}

// ASVS 7.3.2: a login gives the session a new ID, but no more time than it had.
func TestANewIDDoesNotProlongTheSession(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s, v := begun(t, r, middleware.Options{TTL: 2 * time.Hour, Lifetime: 2 * time.Hour}, app())
		redistest.Elapse(119 * time.Minute)
		v.get(s.URL+"/login").want(t, 200, "")
		redistest.Elapse(59 * time.Second)
		v.get(s.URL+"/len").want(t, 200, "2")
		redistest.Elapse(2 * time.Second)
		v.get(s.URL+"/len").want(t, 200, "0")
	})
}

// ASVS 7.3.1: a session that is not used times out, and its ID is not used again.
func TestAnIdleSessionIsOver(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s := newSite(t, r.Pool(t, 4), middleware.Options{TTL: time.Hour}, app())
		v := newVisitor(t)
		v.get(s.URL+"/login").want(t, 200, "")
		old := v.cookie(s)
		redistest.Elapse(time.Hour + time.Second)
		if keys := r.Keys(t); len(keys) > 0 {
			t.Errorf("left are %q", keys)
		}
		with(t, old).get(s.URL+"/len").want(t, 200, "0")
		if a := with(t, old).get(s.URL + "/add"); a.body != "1" || !a.sets() || a.Cookies()[0].Value == old.Value {
			t.Errorf("the old ID is used again: %d %q %v", a.StatusCode, a.body, a.Header)
		}
	})
}

// P12: a request takes longer than the idle timeout. Meanwhile another tab comes to
// another process: it waits, keeps its cookie, and finds what the request has saved.
func TestASessionInUseDoesNotRunOut(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		const ttl = 30 * time.Second
		mux := app()
		handle(mux, "/slow", func(own *session.Session, w http.ResponseWriter, _ *http.Request) {
			redistest.Elapse(50 * time.Second)
			own.Set("n", 500)
		})
		o := middleware.Options{TTL: ttl, LockWait: time.Minute}
		here, v := begun(t, r, o, mux)
		elsewhere := newSite(t, r.Pool(t, 4), o, mux)
		tab := with(t, v.cookies(here)...)
		slow := v.start(here.URL + "/slow")
		synctest.Wait()
		began := time.Now()
		a := tab.get(elsewhere.URL + "/add")
		a.want(t, 200, "501")
		if waited := time.Since(began); waited < 50*time.Second || a.sets() {
			t.Errorf("the other tab got its answer after %v, %v", waited, a.Header)
		}
		(<-slow).want(t, 200, "")
	})
}

// makeOlder sets the age of a session.
func makeOlder(t *testing.T, r *redistest.Server, id string, age time.Duration) {
	t.Helper()
	stored, _ := r.Get(t, recordOf(id))
	before, rest, ok := strings.Cut(stored, `"c":`)
	_, after, _ := strings.Cut(rest, ",")
	if !ok {
		t.Fatalf("%s is no record", stored)
	}
	created := strconv.FormatInt(time.Now().Add(-age).UnixMilli(), 10)
	r.Do(t, "SET", recordOf(id), before+`"c":`+created+","+after, "PX", time.Hour.Milliseconds())
}

// P12: a visitor's session times out earlier until the login. A new visitor who logs in at once is
// no guest, and neither is one who is remembered.
func TestGuestsTimeOutEarlier(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		o := middleware.Options{GuestTTL: 5 * time.Minute, Mode: byPath(map[string]middleware.Mode{"/get": middleware.ReadOnly})}
		s := newSite(t, r.Pool(t, 4), o, rememberer())
		o.GuestTTL = 0
		other := newSite(t, r.Pool(t, 4), o, rememberer()) // a process with other options: the record decides
		v := newVisitor(t).everywhere()
		for _, at := range []*site{s, other} {
			for _, path := range []string{"/add", "/nothing", "/get"} {
				v.get(at.URL+path).want(t, 200, "*")
				v.wantLeft(t, s, r, 5*time.Minute)
			}
		}
		v.get(s.URL+"/login").want(t, 200, "")
		v.wantLeft(t, s, r, 30*time.Minute)
		for path, want := range map[string]time.Duration{
			"/login": 30 * time.Minute, "/add": 5 * time.Minute, "/add-and-remember?for=" + month.String(): month,
		} {
			first := newVisitor(t)
			first.get(s.URL+path).want(t, 200, "*")
			first.wantLeft(t, s, r, want)
		}
	})
}

// Expires is when Redis drops the session: before its first commit, in the middle of the changes
// that a handler makes, and afterwards.
func TestExpiresIsWhenTheSessionEnds(t *testing.T) {
	t.Parallel()
	type step struct {
		do   func(*session.Session)
		left time.Duration // afterwards
	}
	const guest = 5 * time.Minute
	nothing := func(*session.Session) {}
	commit := func(s *session.Session) { _ = s.Commit(context.Background()) }
	paths := []string{"/begin", "/change", "/remember", "/read", "/end"}
	steps := [][]step{
		{{nothing, guest}, {func(s *session.Session) { s.Set("n", 1) }, guest}, {commit, guest}},
		{
			{nothing, guest},
			{func(s *session.Session) { s.Remember(month) }, month},
			{func(s *session.Session) { s.Remember(0) }, guest},
			{(*session.Session).Renew, 30 * time.Minute},
			{func(s *session.Session) { s.Remember(time.Hour) }, time.Hour},
			{commit, time.Hour},
		},
		{{nothing, time.Hour}, {func(s *session.Session) { s.Remember(2 * time.Hour) }, 2 * time.Hour}, {commit, 2 * time.Hour}},
		{{nothing, 2 * time.Hour}},
		{{nothing, 2 * time.Hour}, {(*session.Session).Destroy, 0}, {commit, 0}},
	}
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		for i, path := range paths {
			handle(mux, path, func(s *session.Session, _ http.ResponseWriter, _ *http.Request) {
				for n, step := range steps[i] {
					step.do(s)
					left := time.Until(s.Expires())
					if step.left == 0 && !s.Expires().IsZero() || step.left > 0 && (left > step.left || left < step.left-time.Second) {
						t.Errorf("%s, step %d: it ends in %v, want %v", path, n, left, step.left)
					}
				}
			})
		}
		s := newSite(t, r.Pool(t, 4), middleware.Options{GuestTTL: guest, Mode: byPath(map[string]middleware.Mode{"/read": middleware.ReadOnly})}, mux)
		v := newVisitor(t)
		for _, path := range paths {
			v.get(s.URL+path).want(t, 200, "")
		}
	})
}
