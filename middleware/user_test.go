package middleware_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// users is app with routes for a user's login, and for what users do with their sessions.
func users(sessions func() *middleware.Sessions) *http.ServeMux {
	mux := app()
	mux.HandleFunc("/login/{user}", func(_ http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Login(r.PathValue("user"))
	})
	mux.HandleFunc("/user", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, session.FromContext(r.Context()).User())
	})
	mux.HandleFunc("/renew", func(_ http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Renew()
	})
	handle(mux, "/end/others", func(s *session.Session, w http.ResponseWriter, r *http.Request) {
		n, err := sessions().EndAll(r.Context(), s.User(), s.ID())
		if s.Renew(); err != nil {
			panic(err)
		}
		fmt.Fprint(w, n)
	})
	handle(mux, "/end/all", func(s *session.Session, w http.ResponseWriter, r *http.Request) {
		n, err := sessions().EndAll(r.Context(), s.User())
		if s.Destroy(); err != nil {
			panic(err)
		}
		fmt.Fprint(w, n)
	})
	return mux
}

func newUserSite(t *testing.T, r *redistest.Server, o middleware.Options) *site {
	t.Helper()
	var s *site
	s = newSite(t, r.Pool(t, 8), o, users(func() *middleware.Sessions { return s.sessions }))
	return s
}

// P14: a session that logs in is on the user's list. A session that is ended is dead at once, and
// its visitor may log in again.
func TestAUserEndsTheirSessions(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		hooks := &audit{}
		s := newUserSite(t, r, middleware.Options{
			Hooks:  hooks.hooks(),
			Device: func(r *http.Request) string { return r.UserAgent() + strings.Repeat("é", 200) },
		})
		phone, laptop, bob := newVisitor(t), newVisitor(t), newVisitor(t)
		phone.get(s.URL+"/add").want(t, 200, "1")
		phone.get(s.URL+"/login/ann").want(t, 200, "")
		phone.get(s.URL+"/user").want(t, 200, "ann")
		phone.get(s.URL+"/add").want(t, 200, "2")
		redistest.Elapse(time.Second)
		laptop.get(s.URL+"/login/ann").want(t, 200, "")
		laptop.get(s.URL+"/add").want(t, 200, "1")
		bob.get(s.URL+"/login/bob").want(t, 200, "")

		list, err := s.sessions.List(t.Context(), "ann")
		if err != nil || len(list) != 2 {
			t.Fatalf("%+v, %v", list, err)
		}
		laptop.get(s.URL+"/id").want(t, 200, list[0].ID)
		for _, info := range list {
			if info.User != "ann" || !strings.HasPrefix(info.Device, "Go-http-client/1.1é") || len(info.Device) > 256 ||
				time.Since(info.Created) > time.Minute || time.Since(info.Seen) > time.Minute ||
				time.Until(info.Expires) < 29*time.Minute {
				t.Errorf("%+v", info)
			}
			if peeked, err := s.sessions.Peek(t.Context(), info.ID); err != nil || peeked.Device != info.Device || peeked.User != "ann" {
				t.Errorf("Peek: %+v, %v", peeked, err)
			} else if text := fmt.Sprint(info, peeked); strings.Contains(text, "m=") {
				t.Errorf("the times have a monotonic clock: %s", text)
			}
		}

		must(t, s.sessions.End(t.Context(), list[1].ID))
		phone.get(s.URL+"/user").want(t, 200, "")
		phone.get(s.URL+"/login/ann").want(t, 200, "") // at once
		phone.get(s.URL+"/user").want(t, 200, "ann")

		laptop.get(s.URL+"/end/others").want(t, 200, "1")
		phone.get(s.URL+"/user").want(t, 200, "")
		laptop.get(s.URL+"/add").want(t, 200, "2")
		if out := laptop.get(s.URL + "/end/all"); out.body != "1" || !out.sets() {
			t.Errorf("%d %q, %v", out.StatusCode, out.body, out.Header)
		}
		laptop.get(s.URL+"/user").want(t, 200, "")
		bob.get(s.URL+"/user").want(t, 200, "bob")
		if lists := strings.Count(strings.Join(r.Keys(t), " ")+" ", ".list "); lists != 1 { // bob's
			t.Errorf("%d lists", lists)
		}
	})
}

// Renew and Remember keep the user, and another login changes it. The list has one session all the time. A login
// is a new beginning, so only what comes after it can be remembered.
func TestASessionOfOneUserAfterAnother(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		var s *site
		mux := users(func() *middleware.Sessions { return s.sessions })
		mux.HandleFunc("/remember", func(_ http.ResponseWriter, r *http.Request) {
			session.FromContext(r.Context()).Remember(month)
		})
		s = newSite(t, r.Pool(t, 8), middleware.Options{}, mux)
		v := s.visitor(t)
		v.get(s.URL+"/login/ann").want(t, 200, "")
		for _, path := range []string{"/renew", "/remember", "/login/ann", "/add"} {
			before := v.get(s.URL + "/id").body
			v.get(s.URL+path).want(t, 200, "*")
			v.get(s.URL+"/user").want(t, 200, "ann")
			if after := v.get(s.URL + "/id").body; (after == before) != (path == "/add") {
				t.Errorf("%s: %s, then %s", path, before, after)
			}
			if list, err := s.sessions.List(t.Context(), "ann"); len(list) != 1 || err != nil {
				t.Fatalf("%s: %+v, %v", path, list, err)
			}
		}
		for path, want := range map[string]time.Duration{"/remember": month, "/login/ann": 30 * time.Minute} {
			v.get(s.URL+"/remember").want(t, 200, "")
			v.get(s.URL+path).want(t, 200, "")
			list, _ := s.sessions.List(t.Context(), "ann")
			if left := time.Until(list[0].Expires); left > want || left < want-time.Minute {
				t.Errorf("%s: it has %v left, want %v", path, left, want)
			}
		}
		v.get(s.URL+"/login/bob").want(t, 200, "")
		v.get(s.URL+"/user").want(t, 200, "bob")
		v.get(s.URL+"/get").want(t, 200, "2")
		if list, err := s.sessions.List(t.Context(), "ann"); len(list) > 0 || err != nil {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

// A login beyond MaxSessions is refused, or ends another session of the user, by the options.
func TestMaxSessions(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		gentle := newUserSite(t, r, middleware.Options{MaxSessions: 1})
		strict := newUserSite(t, r, middleware.Options{MaxSessions: 1, RefuseLogin: true})
		one, two := newVisitor(t), newVisitor(t).everywhere()
		one.get(gentle.URL+"/login/ann").want(t, 200, "")
		one.get(gentle.URL+"/user").want(t, 200, "ann")
		two.get(strict.URL+"/add").want(t, 200, "1")
		two.get(strict.URL+"/login/ann").want(t, 403, "You are logged in on too many devices. Please log out on one of them first.")
		two.get(strict.URL+"/get").want(t, 200, "1")
		two.get(strict.URL+"/user").want(t, 200, "")
		one.get(gentle.URL+"/user").want(t, 200, "ann")
		two.get(gentle.URL+"/login/ann").want(t, 200, "")
		one.get(gentle.URL+"/user").want(t, 200, "")
		two.get(gentle.URL+"/get").want(t, 200, "1")
	})
}

// P12: If Remember has kept a login for longer than Lifetime, and the login is not to be remembered any more, it ends
// at once. Its browser forgets the cookie.
func TestForgettingALoginAfterTheLifetimeEndsIt(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		mux := http.NewServeMux()
		handle(mux, "/remember", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) { s.Remember(month) })
		handle(mux, "/forget", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) { s.Remember(0) })
		mux.Handle("/", users(nil))
		s := newSite(t, r.Pool(t, 8), middleware.Options{}, mux)
		v := visitAs(t, s, "ann")
		v.get(s.URL+"/remember").want(t, 200, "")
		redistest.Elapse(48 * time.Hour)
		v.get(s.URL+"/user").want(t, 200, "ann")
		forgotten := v.get(s.URL + "/forget")
		forgotten.want(t, 200, "")
		if cookies := forgotten.Cookies(); len(cookies) != 1 || cookies[0].Name != "sid-login" || cookies[0].MaxAge >= 0 {
			t.Errorf("the response sets %v, and does not delete the login's cookie", cookies)
		}
		v.get(s.URL+"/user").want(t, 200, "")
		if all, err := s.sessions.List(t.Context(), "ann"); len(all) > 0 || err != nil {
			t.Errorf("ann is logged in: %v, %v", all, err)
		}
	})
}

// P4: If a visitor was remembered for longer than Lifetime, and logs in without being remembered any more, the
// visitor is logged in: the session begins anew.
func TestALoginAfterTheLifetimeBeginsAnew(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		mux := http.NewServeMux()
		handle(mux, "/remember", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) { s.Remember(month) })
		handle(mux, "/login-only", func(s *session.Session, w http.ResponseWriter, _ *http.Request) {
			s.Login("ann")
			s.Remember(0)
			fmt.Fprint(w, time.Until(s.Expires()).Round(time.Second))
		})
		mux.Handle("/", users(nil))
		s := newSite(t, r.Pool(t, 8), middleware.Options{}, mux)
		for range 2 { // the first time ann is logged in nowhere else, the second time she is
			v := s.visitor(t)
			v.get(s.URL+"/remember").want(t, 200, "")
			redistest.Elapse(48 * time.Hour)
			newVisitor(t).get(s.URL+"/login/ann").want(t, 200, "")
			v.get(s.URL+"/login-only").want(t, 200, "30m0s")
			v.get(s.URL+"/user").want(t, 200, "ann")
			v.get(s.URL+"/add").want(t, 200, "2")
			v.wantLeft(t, s, r, 30*time.Minute)
		}
	})
}

// A malformed user or ID is a clear error, and nothing is lost.
func TestBadUsersAndIDs(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s := newUserSite(t, r, middleware.Options{})
		v := s.visitor(t)
		long, half := strings.Repeat("x", 513), strings.Repeat("A", 16)+"."+strings.Repeat("A", 10)
		v.get(s.URL+"/login/"+long).want(t, 500, "*")
		v.get(s.URL+"/login/%FF").want(t, 500, "*")
		v.get(s.URL+"/get").want(t, 200, "1")
		v.get(s.URL+"/login/ann").want(t, 200, "")
		if log := s.log.String(); !strings.Contains(log, "1 to 512 bytes of valid UTF-8") {
			t.Errorf("the log does not name the rule: %s", log)
		}
		for _, id := range []string{"", "x", half, half + "%", strings.Repeat("A", 21) + "B", strings.Repeat("A", 28), strings.Repeat("A", 1<<20)} {
			_, peeked := s.sessions.Peek(t.Context(), id)
			ended, updated := s.sessions.End(t.Context(), id), s.sessions.Update(t.Context(), id, adding)
			for what, err := range map[string]error{"Peek": peeked, "End": ended, "Update": updated} {
				if !errors.Is(err, store.ErrNotFound) || !strings.Contains(err.Error(), "public ID") {
					t.Errorf("%s of %.40q: %v", what, id, err)
				}
			}
		}
		if err := s.sessions.End(t.Context(), strings.Repeat("A", 22)); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("End of an unknown ID: %v", err)
		}
		for _, test := range []struct {
			user   string
			except []string
			n      int
			says   string // of its error
		}{
			{"ann", []string{"not the ID"}, 0, "public ID"},
			{"", nil, 0, "user"},
			{long, nil, 0, "user"},
			{"nobody", nil, 0, ""},
			{"ann", []string{""}, 1, ""}, // except nothing
		} {
			n, err := s.sessions.EndAll(t.Context(), test.user, test.except...)
			if n != test.n || (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("EndAll of %.40q: %d, %v; want %d, %q", test.user, n, err, test.n, test.says)
			}
		}
		if list, err := s.sessions.List(t.Context(), ""); len(list) > 0 || err != nil {
			t.Errorf("List without a user: %v, %v", list, err)
		}
	})
}

// If the record of a user's session is damaged, as a whole or only in its values, and OnCorrupt allows it, an empty
// session without a user replaces it, in each mode. The empty session is saved and read like any other, has another
// ID, and can be logged in to again.
func TestADamagedSessionOfAUserIsReplaced(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		for _, mode := range []middleware.Mode{middleware.Exclusive, middleware.Optimistic} {
			s := newUserSite(t, r, middleware.Options{
				Mode:      byPath(map[string]middleware.Mode{"/add": mode}),
				OnCorrupt: func(*http.Request, error) error { return nil },
				GuestTTL:  5 * time.Minute,
			})
			for _, damage := range []func(string) string{
				func(string) string { return "junk" },
				func(record string) string {
					return record[:len(`{"v":2,"s":"0123456789abcdef"`)] + `,"c":1700000000000,"d":{}}`
				},
				func(record string) string { return strings.Replace(record, `{}]`, `[1]]`, 1) },
			} {
				ann := newVisitor(t)
				ann.get(s.URL+"/login/ann").want(t, 200, "")
				id := ann.get(s.URL + "/id").body
				stored, _ := r.Get(t, recordOf(id))
				damaged := damage(stored)
				if damaged == stored {
					t.Fatalf("no values in %s", stored)
				}
				r.Do(t, "SET", recordOf(id), damaged, "PX", 60000)
				ann.get(s.URL+"/add").want(t, 200, "1")
				ann.get(s.URL+"/add").want(t, 200, "2")
				ann.get(s.URL+"/user").want(t, 200, "")
				ann.wantLeft(t, s, r, 5*time.Minute)
				if ann.get(s.URL+"/id").body == id {
					t.Errorf("%v: the empty session has the ID of the user's session", mode)
				}
				ann.get(s.URL+"/login/ann").want(t, 200, "")
				ann.wantLeft(t, s, r, 30*time.Minute)
				ann.get(s.URL+"/add").want(t, 200, "3")
				ann.get(s.URL+"/user").want(t, 200, "ann")
			}
		}
	})
}

// visitAs returns a visitor who is logged in.
func visitAs(t *testing.T, s *site, user string) *visitor {
	t.Helper()
	v := s.visitor(t)
	v.get(s.URL+"/login/"+user).want(t, 200, "")
	v.get(s.URL+"/user").want(t, 200, user)
	return v
}

// wantUsers checks who is logged in where.
func wantUsers(t *testing.T, s *site, want map[*visitor]string) {
	t.Helper()
	for v, user := range want {
		v.get(s.URL+"/user").want(t, 200, user)
	}
}
