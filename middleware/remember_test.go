package middleware_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/internal/secret"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// rememberer is app with routes that call Remember.
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

// cookie returns the cookie that the response sets. Such a response must not be cached.
func (a answer) cookie(t *testing.T) *http.Cookie {
	t.Helper()
	cookies := a.Cookies()
	isLogin := len(cookies) == 2 && cookies[0].Name == "sid-login" && cookies[1].Name == "sid" && cookies[1].MaxAge < 0
	if (len(cookies) == 1 || isLogin) && a.StatusCode == http.StatusOK && a.Header.Get("Cache-Control") == "no-store" {
		return cookies[0]
	}
	t.Fatalf("%d %q does not set one cookie: %v", a.StatusCode, a.body, a.Header)
	return nil
}

// wantMaxAge checks that the response's cookie lasts for d, or with 0 until the browser is closed.
func (a answer) wantMaxAge(t *testing.T, d time.Duration) {
	t.Helper()
	if got := time.Duration(a.cookie(t).MaxAge) * time.Second; got > d || got < d-time.Minute {
		t.Errorf("the cookie lasts for %v, want %v", got, d)
	}
}

// wantLeft checks for how long Redis keeps the visitor's session.
func (v *visitor) wantLeft(t *testing.T, s *site, r *redistest.Server, want time.Duration) {
	t.Helper()
	record := recordOf(v.get(s.URL + "/id").body) // this request uses the session, too
	left := time.Duration(r.Do(t, "PTTL", record).(int64)) * time.Millisecond
	if left > want || left < want-time.Minute {
		t.Errorf("the session has %v left, want %v", left, want)
	}
}

// P12: A session that is remembered at the login lasts for that long, used or not, in Redis and in the browser,
// whatever happens to it, until Remember(0).
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
			t.Error("the cookie has another value, although the ID is the same")
		}
		if a := v.get(s.URL + "/remember?for=0s"); a.sets() {
			t.Error("Remember(0) sets the cookie of a session that is not remembered")
		}
		v.get(s.URL+"/get").want(t, 200, "3")
	})
}

// P12: Options.Lifetime does not end a remembered session. Its own end does.
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

// P2: a Remember that cannot be kept fails the request. It cannot be kept if the session is only
// read, or if the handler has removed the cookie from the request's header. Nothing is saved.
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

// P2: if the session cannot be saved with its new end, the browser does not get the cookie that lasts until then.
func TestARememberThatIsNotSavedSetsNoCookie(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s, v := begunWith(t, r, middleware.Options{}, "/remember", func(s *session.Session, _ http.ResponseWriter, req *http.Request) {
			s.Remember(month)
			loseLock(t, r, req)
		})
		a := v.get(s.URL + "/remember")
		if a.want(t, 503, "*"); a.sets() || strings.Contains(a.body, notAllSaved) {
			t.Errorf("nothing was saved, and the response is %q with the header %v", a.body, a.Header)
		}
		v.get(s.URL+"/get").want(t, 200, "1")
		v.wantLeft(t, s, r, 30*time.Minute)
	})
}

// A cookie that is set again after a long time is signed anew if its signature would not last until
// the session's end.
func TestARememberedSessionOutlivesItsSignature(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s := newSite(t, r.Pool(t, 4), middleware.Options{}, rememberer())
		random := bytes.Repeat([]byte("s"), 32)
		old := sign(testKey, "sid", time.Now().Add(-390*24*time.Hour), random)
		v := with(t, &http.Cookie{Name: "sid", Value: old})
		id, err := secret.IDOf(random)
		must(t, err)
		stored := fmt.Sprintf(`{"v":2,"s":"%s","c":1,"u":%d,"d":{"n":7}}`,
			lease.NewID(lease.BondOf(recordOf(id), ".lock")), time.Now().Add(month).UnixMilli())
		r.Do(t, "SET", recordOf(id), stored, "PX", month.Milliseconds())
		v.get(s.URL+"/get").want(t, 200, "7")
		short := v.get(s.URL + "/remember?for=24h")
		short.wantMaxAge(t, 24*time.Hour)
		long := v.get(s.URL + "/remember?for=" + month.String())
		long.wantMaxAge(t, month)
		if short.cookie(t).Value != old || long.cookie(t).Value == old {
			t.Error("the cookie must be signed anew if that is necessary, and only then")
		}
		with(t, long.cookie(t)).get(s.URL+"/get").want(t, 200, "7")
	})
}

// P12: A session that was begun or renewed in this request can be remembered after a Reopen. The response has one
// cookie, of the newest ID, which lasts for as long as the last Remember says.
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

const month = 30 * 24 * time.Hour
