package middleware_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/internal/secret"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// ASVS 7.1.1: the timeouts in the README are those that a session has if
// nothing else is said.
func TestTheDefaultTimeoutsAreAsDocumented(t *testing.T) {
	t.Parallel()
	readme := read(t, "../README.md")
	for _, row := range []string{
		fmt.Sprintf(`\| .TTL. \| [^|]+ \| %.0f min \|`, store.DefaultTTL.Minutes()),
		fmt.Sprintf(`\| .Lifetime. \| [^|]+ \| %.0f h \|`, store.DefaultLifetime.Hours()),
	} {
		if !regexp.MustCompile(row).MatchString(readme) {
			t.Errorf("the README has no %s", row)
		}
	}
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		s, v := begun(t, r, middleware.Options{}, app())
		began := time.Now()
		for time.Since(began) < store.DefaultLifetime-store.DefaultTTL {
			redistest.Elapse(store.DefaultTTL - time.Second)
			v.get(s.URL+"/get").want(t, 200, "1")
		}
		redistest.Elapse(store.DefaultLifetime - time.Since(began) - time.Second)
		v.get(s.URL+"/get").want(t, 200, "1")
		redistest.Elapse(2 * time.Second)
		v.get(s.URL+"/get").want(t, 200, "0")
		v.get(s.URL+"/add").want(t, 200, "1")
		redistest.Elapse(store.DefaultTTL + time.Second)
		v.get(s.URL+"/get").want(t, 200, "0")
	})
}

// P12, ASVS 7.3.1: any request that opens the session counts as its use, whether it writes or not, as
// a page that polls does. One that does not open it does not count.
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
			t.Errorf("a session that is over was written to: %d %q", a.StatusCode, a.body)
		}
	})
}

// ASVS 7.3.2: a login gives the session a new id, but no more time than it had.
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

// ASVS 7.3.1: a session that is not used times out, and its id is not used again.
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
			t.Errorf("the old id is used again: %d %q %v", a.StatusCode, a.body, a.Header)
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

// makeOlder makes a session as old as that.
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

// rememberer is app with a choice at the login, and later.
func rememberer() *http.ServeMux {
	mux := app()
	remember := func(r *http.Request) {
		d, err := time.ParseDuration(r.FormValue("for"))
		if err != nil {
			panic(err)
		}
		session.FromContext(r.Context()).Remember(d)
	}
	handle(mux, "/login-for", func(s *session.Session, _ http.ResponseWriter, r *http.Request) {
		s.Renew()
		s.Set("user", "ann")
		remember(r)
	})
	mux.HandleFunc("/remember", func(_ http.ResponseWriter, r *http.Request) { remember(r) })
	mux.HandleFunc("/add-and-remember", func(w http.ResponseWriter, r *http.Request) {
		remember(r)
		mux.ServeHTTP(w, as(r, "/add"))
	})
	mux.HandleFunc("/expires", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, session.FromContext(r.Context()).Expires().UnixMilli())
	})
	return mux
}

const month = 30 * 24 * time.Hour

// cookie returns the one that the answer sets, which is not to be cached then.
func (a answer) cookie(t *testing.T) *http.Cookie {
	t.Helper()
	if cookies := a.Cookies(); len(cookies) == 1 && a.StatusCode == http.StatusOK && a.Header.Get("Cache-Control") == "no-store" {
		return cookies[0]
	}
	t.Fatalf("%d %q does not set one cookie: %v", a.StatusCode, a.body, a.Header)
	return nil
}

// wantMaxAge checks that the answer's cookie lasts for d, or with 0 until the browser is closed.
func (a answer) wantMaxAge(t *testing.T, d time.Duration) {
	t.Helper()
	if got := time.Duration(a.cookie(t).MaxAge) * time.Second; got > d || got < d-time.Minute {
		t.Errorf("the cookie lasts for %v, want %v", got, d)
	}
}

// wantLeft checks for how long Redis keeps the visitor's session.
func (v *visitor) wantLeft(t *testing.T, s *site, r *redistest.Server, want time.Duration) {
	t.Helper()
	record := recordOf(v.get(s.URL + "/id").body) // which uses it, too
	left := time.Duration(r.Do(t, "PTTL", record).(int64)) * time.Millisecond
	if left > want || left < want-time.Minute {
		t.Errorf("the session has %v left, want %v", left, want)
	}
}

// P12: a session that is remembered at the login lasts for that long, used or not, in Redis and in
// the browser, whatever happens to it; until it is forgotten.
func TestARememberedSessionOutlivesTheBrowser(t *testing.T) {
	onEach(t, func(t *testing.T, r *redistest.Server) {
		s := newSite(t, r.Pool(t, 4), middleware.Options{
			Mode: byPath(map[string]middleware.Mode{"/get": middleware.ReadOnly, "/remember": middleware.Optimistic}),
		}, rememberer())
		v := newVisitor(t)
		v.get(s.URL+"/add").wantMaxAge(t, 0)
		v.wantLeft(t, s, r, 30*time.Minute)
		v.get(s.URL+"/login-for?for="+month.String()).wantMaxAge(t, month)
		for _, path := range []string{"/nothing", "/add", "/get"} {
			if a := v.get(s.URL + path); a.sets() {
				t.Errorf("%s sets the cookie again", path)
			}
			v.wantLeft(t, s, r, month)
		}
		// Another login, or any Renew, keeps the end.
		v.get(s.URL+"/login").wantMaxAge(t, month)
		v.wantLeft(t, s, r, month)

		value := v.cookies(s)[0].Value
		again := v.get(s.URL + "/remember?for=48h")
		again.wantMaxAge(t, 48*time.Hour)
		v.wantLeft(t, s, r, 48*time.Hour)
		forgotten := v.get(s.URL + "/add-and-remember?for=0s")
		forgotten.wantMaxAge(t, 0)
		v.wantLeft(t, s, r, 30*time.Minute)
		if again.cookie(t).Value != value || forgotten.cookie(t).Value != value {
			t.Error("the cookie has another value, although the id is the same")
		}
		if a := v.get(s.URL + "/remember?for=0s"); a.sets() {
			t.Error("to forget what is not remembered sets the cookie")
		}
		v.get(s.URL+"/get").want(t, 200, "3")
	})
}

// P12: nor does the Lifetime of the options end it; but its own end does.
func TestOnlyItsOwnEndEndsARememberedSession(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s := newSite(t, r.Pool(t, 4), middleware.Options{
			Mode: byPath(map[string]middleware.Mode{"/get": middleware.ReadOnly}),
		}, rememberer())
		v := newVisitor(t)
		v.get(s.URL+"/add-and-remember?for="+month.String()).wantMaxAge(t, month) // a new session, too
		redistest.Elapse(25 * time.Hour)
		v.get(s.URL+"/get").want(t, 200, "1")
		v.get(s.URL+"/add").want(t, 200, "2")
		v.wantLeft(t, s, r, month-25*time.Hour)

		kept := with(t, v.cookies(s)...) // by a browser that does not drop it
		v.get(s.URL+"/remember?for=1s").wantMaxAge(t, time.Second)
		redistest.Elapse(time.Second + time.Millisecond)
		kept.get(s.URL+"/get").want(t, 200, "0")
	})
}

// P2: a Remember that cannot be kept fails the request, and so does one if the session is only
// read, or if the handler has taken the cookie out of the request's header. Nothing is saved.
func TestAWrongRememberIsAnError(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		mux := rememberer()
		mux.HandleFunc("/strip", func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("Cookie")
			mux.ServeHTTP(w, as(r, "/add-and-remember"))
		})
		s, v := begun(t, r, middleware.Options{Mode: byPath(map[string]middleware.Mode{"/remember": middleware.ReadOnly})}, mux)
		for path, text := range map[string]string{
			"/add-and-remember?for=-1h":    "Remember(-1h0m0s): it must not be negative",
			"/add-and-remember?for=10000h": "Remember(10000h0m0s): it must be at most 400 days",
			"/remember?for=1h":             "session: Remember: session is open for reading only",
			"/strip?for=2h":                "Remember has to set the cookie again",
		} {
			if a := v.get(s.URL + path); a.StatusCode != http.StatusInternalServerError || a.sets() {
				t.Errorf("%s: %d %v", path, a.StatusCode, a.Header)
			}
			if n := len(s.log.Lines(text)); n != 1 {
				t.Errorf("%s: %d lines of the log say %q", path, n, text)
			}
		}
		v.get(s.URL+"/get").want(t, 200, "1")
		v.wantLeft(t, s, r, 30*time.Minute)
	})
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
	paths := []string{"/begin", "/change", "/read", "/end"}
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
		{{nothing, time.Hour}},
		{{nothing, time.Hour}, {(*session.Session).Destroy, 0}, {commit, 0}},
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

// A cookie that is set again after a long time is signed anew where its signature would not last
// until the session's end.
func TestARememberedSessionOutlivesItsSignature(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s := newSite(t, r.Pool(t, 4), middleware.Options{}, rememberer())
		random := bytes.Repeat([]byte("s"), 32)
		old := sign(testKey, "sid", time.Now().Add(-390*24*time.Hour), random)
		stored := fmt.Sprintf(`{"v":2,"s":"ABCDEFGHIJKLMNOP","c":1,"u":%d,"d":{"n":7}}`, time.Now().Add(month).UnixMilli())
		v := with(t, &http.Cookie{Name: "sid", Value: old})
		id, err := secret.IDOf(random)
		must(t, err)
		r.Do(t, "SET", recordOf(id), stored, "PX", month.Milliseconds())
		v.get(s.URL+"/get").want(t, 200, "7")
		short := v.get(s.URL + "/remember?for=24h")
		short.wantMaxAge(t, 24*time.Hour)
		long := v.get(s.URL + "/remember?for=" + month.String())
		long.wantMaxAge(t, month)
		if short.cookie(t).Value != old || long.cookie(t).Value == old {
			t.Error("the cookie must be signed anew where that is necessary, and only there")
		}
		with(t, long.cookie(t)).get(s.URL+"/get").want(t, 200, "7")
	})
}

// P12: a session that was begun or renewed in this request can be remembered after a Reopen. The
// answer has one cookie, of the newest id, and it lasts as the last Remember says.
func TestRememberAfterReopen(t *testing.T) {
	t.Parallel()
	remember := func(s *session.Session) { s.Remember(month) }
	for name, test := range map[string]struct {
		begun         bool // before the request
		first, second func(*session.Session)
		age, left     time.Duration
	}{
		"begun":      {false, func(s *session.Session) { add(s) }, remember, month, month},
		"renewed":    {true, func(s *session.Session) { s.Renew() }, remember, month, month},
		"old":        {true, func(s *session.Session) { add(s) }, remember, month, month},
		"remembered": {false, func(s *session.Session) { add(s); s.Remember(month) }, func(s *session.Session) { s.Remember(48 * time.Hour) }, 48 * time.Hour, 48 * time.Hour},
		"forgotten":  {true, remember, func(s *session.Session) { s.Remember(0) }, 0, 30 * time.Minute},
		"kept":       {true, remember, func(s *session.Session) { s.Renew() }, month, month},
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			s := siteWith(t, r, middleware.Options{}, "/twice", func(s *session.Session, _ http.ResponseWriter, req *http.Request) {
				test.first(s)
				must(t, s.Commit(req.Context()))
				must(t, s.Reopen(req.Context()))
				test.second(s)
			})
			v := newVisitor(t)
			if test.begun {
				v.get(s.URL+"/add").want(t, 200, "1")
			}
			v.get(s.URL+"/twice").wantMaxAge(t, test.age)
			v.wantLeft(t, s, r, test.left)
			if v.get(s.URL+"/get").body == "0" {
				t.Error("the cookie does not open the session")
			}
		})
	}
}
