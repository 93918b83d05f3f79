package migration

import (
	"bytes"
	"context"
	"errors"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/fakeredis"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/session"
)

// Visitors who are logged in with the old library stay logged in, with all values, and get a cookie of
// Latchkey in place of the old one.
func TestVisitorsStayLoggedIn(t *testing.T) {
	each(t, func(s *site, _ *redistest.Server) {
		v := s.ann()
		v.want("/me", 200, ann)
		if v.has(s.cookie) || !v.has("sid") {
			s.Errorf("after the first request the cookies are %v", v.Jar.Cookies(s.address))
		}
		v.want("/write", 200, "")
		v.want("/me", 200, ann)
	})
}

// The first requests may come at once. Each finds the visitor logged in, and so does the next request, whichever
// response arrives last.
func TestABurstOfFirstRequests(t *testing.T) {
	each(t, func(s *site, _ *redistest.Server) {
		v := s.ann()
		old := v.Jar.Cookies(s.address)
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() { s.visitor(old...).want("/me", 200, ann) }) // none waits for another's response
			all.Go(func() { v.want("/me", 200, ann) })
		}
		all.Wait()
		v.want("/me", 200, ann)
	})
}

// The first response may be lost, or lack the cookie: the visitor can come again for an hour.
func TestTheFirstResponseIsLost(t *testing.T) {
	each(t, func(s *site, _ *redistest.Server) {
		v := s.ann()
		s.visitor(v.Jar.Cookies(s.address)...).want("/me", 200, ann)
		redistest.Elapse(time.Hour - time.Second)
		v.want("/me", 200, ann)
		redistest.Elapse(time.Hour)
		v.want("/me", 200, ann)
	})
}

// The old cookie is worthless an hour later, and at once after a logout or a login. A session that exists only in
// its cookie cannot be ended.
func TestTheOldCookieEnds(t *testing.T) {
	each(t, func(s *site, _ *redistest.Server) {
		after := nobody
		if !s.ends {
			after = ann
		}
		for _, paths := range [][]string{{"/logout"}, {"/me", "/logout"}, {"/login"}, {"/me", "/login"}, {"/me"}} {
			v := s.ann()
			old := v.Jar.Cookies(s.address)
			for _, path := range paths {
				v.want(path, 200, "*")
			}
			if paths[len(paths)-1] == "/me" {
				redistest.Elapse(time.Hour - time.Second)
				s.visitor(old...).want("/me", 200, ann) // this does not extend the hour
				redistest.Elapse(2 * time.Second)
			}
			s.visitor(old...).want("/me", 200, after)
		}
	})
}

// If the new session ends within the hour, by its TTL, the old cookie becomes worthless, too.
func TestTheOldCookieAndAShortTTL(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, old *redistest.Server) {
		_, l := newSCS(t, old)
		l.options.GuestTTL = 10 * time.Minute
		s := newSite(t, l, old.Another(t))
		v := s.ann()
		cookies := v.Jar.Cookies(s.address)
		v.want("/me", 200, ann)
		redistest.Elapse(10*time.Minute - time.Second)
		s.visitor(cookies...).want("/me", 200, ann)
		redistest.Elapse(2 * time.Second)
		s.visitor(cookies...).want("/me", 200, nobody)
	})
}

// A visitor with a session of Latchkey keeps it, whatever old cookie comes with the request.
func TestTheNewSessionCounts(t *testing.T) {
	each(t, func(s *site, _ *redistest.Server) {
		s.both().want("/me", 200, nobody)
	})
}

// An old cookie that stays in the browser makes no request wait for another.
func TestTheNewSessionIsNotLocked(t *testing.T) {
	each(t, func(s *site, _ *redistest.Server) {
		v := s.both()
		var holder sync.WaitGroup
		holder.Go(func() { v.want("/hold", 200, "") })
		<-s.held
		v.want("/read", 200, nobody)
		s.held <- struct{}{}
		holder.Wait()
	})
}

// An old cookie that was never issued, or whose session has ended, is ignored.
func TestAnUnknownOldCookie(t *testing.T) {
	each(t, func(s *site, _ *redistest.Server) {
		v := s.visitor(&http.Cookie{Name: s.cookie, Value: "made-up"})
		v.want("/me", 200, nobody)
		if v.has(s.cookie) || v.has("sid") {
			s.Errorf("the cookies are %v", v.Jar.Cookies(s.address))
		}
		v = s.ann()
		s.lose()
		if s.ends {
			v.want("/me", 200, nobody)
		} else {
			v.want("/me", 200, ann) // all of the session is in the cookie
		}
	})
}

// If the old sessions cannot be read, no visitor is logged out: the request gets a 503, and the cookie stays.
func TestTheOldRedisIsAway(t *testing.T) {
	each(t, func(s *site, redis *redistest.Server) {
		v := s.ann()
		redis.Fake(func(r *fakeredis.Server) { r.Loading = true })
		if s.ends && !s.files {
			v.want("/me", 503, "*")
		} else {
			v.want("/me", 200, ann) // this session needs no Redis
		}
		redis.Fake(func(r *fakeredis.Server) { r.Loading = false })
		v.want("/me", 200, ann)
	})
}

// The new session cannot be stored, the old one cannot be ended, or the program's own check fails. No visitor is
// logged out then either: the old cookie stays, and the next request moves the session.
func TestTheMoveFails(t *testing.T) {
	each(t, func(s *site, old *redistest.Server) {
		v := s.ann()
		s.redis.Fake(func(r *fakeredis.Server) { r.Loading = true })
		v.want("/me", 503, "*")
		s.redis.Fake(func(r *fakeredis.Server) { r.Loading = false })
		s.adopt = func(context.Context, *session.Session) error { return errors.New("the database is away") }
		if res := v.want("/me", 503, "*"); res.Header.Get("Retry-After") == "" {
			s.Error("there is no Retry-After")
		}
		s.adopt = func(context.Context, *session.Session) error {
			old.Fake(func(r *fakeredis.Server) { r.Loading = true })
			return nil
		}
		if s.ends && !s.files {
			v.want("/me", 503, "*") // the old session cannot be ended
			if !v.has(s.cookie) || v.has("sid") {
				s.Errorf("the cookies are %v", v.Jar.Cookies(s.address))
			}
		}
		s.adopt = nil
		old.Fake(func(r *fakeredis.Server) { r.Loading = false })
		cookies := v.Jar.Cookies(s.address)
		v.want("/me", 200, ann)
		v.want("/logout", 200, "")
		if s.ends {
			s.visitor(cookies...).want("/me", 200, nobody)
		}
	})
}

// logsIn is an Adopt.
func logsIn(_ context.Context, s *session.Session) error {
	s.Login("ann")
	return nil
}

// The program may log a moved visitor in. Then EndAll ends the session, and the old cookie is worthless.
func TestAdoptLogsIn(t *testing.T) {
	each(t, func(s *site, _ *redistest.Server) {
		s.adopt = logsIn
		v := s.ann()
		old := v.Jar.Cookies(s.address)
		v.want("/me", 200, ann)
		if n, err := s.sessions.EndAll(s.Context(), "ann"); n != 1 || err != nil {
			s.Errorf("EndAll ended %d, error %v", n, err)
		}
		v.want("/me", 200, nobody)
		if s.ends {
			s.visitor(old...).want("/me", 200, nobody)
		}
	})
}

// A thief who uses a copy of the old cookie within the hour gets a session of its own. It survives the visitor's
// logout, unless the logout calls EndAll.
func TestACopyOfTheOldCookie(t *testing.T) {
	each(t, func(s *site, _ *redistest.Server) {
		s.adopt = logsIn
		v := s.ann()
		thief := s.visitor(v.Jar.Cookies(s.address)...)
		v.want("/me", 200, ann)
		thief.want("/me", 200, ann)
		v.want("/logout", 200, "")
		thief.want("/me", 200, ann)
		if n, err := s.sessions.EndAll(s.Context(), "ann"); n != 1 || err != nil {
			s.Errorf("EndAll ended %d, error %v", n, err)
		}
		thief.want("/me", 200, nobody)
	})
}

// A login that RefuseLogin refuses is answered with 403. The old cookie stays.
func TestAdoptLogsInTooOften(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, old *redistest.Server) {
		_, l := newSCS(t, old)
		l.options.MaxSessions, l.options.RefuseLogin = 1, true
		s := newSite(t, l, old.Another(t))
		s.adopt = logsIn
		first, second := s.ann(), s.ann()
		first.want("/me", 200, ann)
		second.want("/me", 403, "*")
		first.want("/logout", 200, "")
		second.want("/me", 200, ann)
	})
}

// With an adopt that logs in, each session of a burst counts. MaxSessions must leave room for them, or the
// browser may keep the cookie of a session that was ended.
func TestMaxSessionsAndABurst(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, old *redistest.Server) {
		for limit, after := range map[int]string{1: nobody, 2: ann} {
			_, l := newSCS(t, old)
			l.options.MaxSessions = limit
			s := newSite(t, l, old.Another(t))
			s.adopt = logsIn
			v := s.ann()
			second := s.visitor(v.Jar.Cookies(s.address)...)
			v.want("/me", 200, ann)
			second.want("/me", 200, ann)
			v.want("/me", 200, after)
		}
	})
}

// The program may refuse an old session: its visitor is not logged in, now or later.
func TestAdoptRefuses(t *testing.T) {
	each(t, func(s *site, _ *redistest.Server) {
		refused := 0
		s.adopt = func(_ context.Context, s *session.Session) error {
			if user, _ := session.Get[string](s, "user"); user == "ann" {
				refused++
				s.Clear()
			}
			return nil
		}
		v := s.ann()
		old := v.Jar.Cookies(s.address)
		v.want("/me", 200, nobody)
		if v.has(s.cookie) || v.has("sid") || refused != 1 {
			s.Errorf("refused %d times, the cookies are %v", refused, v.Jar.Cookies(s.address))
		}
		s.visitor(old...).want("/me", 200, nobody)
	})
}

// The routes may have any modes, also in the request that moves the session.
func TestMovingAndModes(t *testing.T) {
	each(t, func(s *site, _ *redistest.Server) {
		v := s.ann()
		v.want("/read", 200, ann)
		v.want("/read", 200, ann)
		s.ann().want("/static", 200, "")
		s.ann().want("/lazy", 200, ann)
	})
}

// The handler gets the body of a request with an old cookie, whether or not a session is moved.
func TestMovingAndABody(t *testing.T) {
	each(t, func(s *site, _ *redistest.Server) {
		for _, v := range []*visitor{s.ann(), s.both()} {
			v.wants(http.MethodPost, "/echo", "hello", 200, "hello")
		}
	})
}

// No cache keeps the response that sets the cookie, whatever the handler says. A stream still works.
func TestMovingAndCaches(t *testing.T) {
	each(t, func(s *site, _ *redistest.Server) {
		for _, path := range []string{"/public", "/public?write", "/public?flush"} {
			res := s.ann().want(path, 200, "*")
			if got := res.Header.Get("Cache-Control") + res.Header.Get("Surrogate-Control"); got != "no-store" || len(res.Cookies()) < 2 {
				s.Errorf("%s: a cache may keep the response: %v", path, res.Header)
			}
		}
	})
}

// A logger around the step sees the route. net/http sees the form, and removes its files.
func TestMovingAndWhatIsAroundIt(t *testing.T) {
	each(t, func(s *site, _ *redistest.Server) {
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		if err := form.WriteField("key", "value"); err != nil {
			s.Fatal(err)
		}
		_ = form.Close()
		r := httptest.NewRequest("POST", "/form/7", &body)
		r.Header.Set("Content-Type", form.FormDataContentType())
		r.AddCookie(&http.Cookie{Name: s.cookie, Value: "unknown"})
		mux := http.NewServeMux()
		mux.HandleFunc("/form/{id}", func(_ http.ResponseWriter, r *http.Request) {
			if got := r.FormValue("key"); got != "value" {
				s.Errorf("the form has %q", got)
			}
		})
		s.move(s.sessions, nil, s.sessions.Handler(mux)).ServeHTTP(httptest.NewRecorder(), r)
		if r.Pattern != "/form/{id}" || r.MultipartForm == nil {
			s.Errorf("the route is %q, the form %v", r.Pattern, r.MultipartForm)
		}
	})
}
