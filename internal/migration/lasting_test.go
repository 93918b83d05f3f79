package migration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/alexedwards/scs/v2"
	"github.com/boj/redistore"
	redigo "github.com/gomodule/redigo/redis"
	"github.com/gorilla/sessions"
)

const day = 24 * time.Hour

// fromSCS runs a test with a site that has used scs with these changes.
func fromSCS(t *testing.T, change func(*scs.SessionManager, *library), f func(s *site)) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, old *redistest.Server) {
		manager, l := newSCS(t, old)
		change(manager, &l)
		l.options = OptionsOfSCS(manager)
		f(newSite(t, l, old.Another(t)))
	})
}

// newCookie makes the request in which a session is moved, and returns its cookie.
func (v *visitor) newCookie() *http.Cookie {
	v.Helper()
	for _, c := range v.want("/me", 200, ann).Cookies() {
		if c.Name == "sid" {
			return c
		}
	}
	v.Fatal("there is no cookie")
	return nil
}

// With the default settings of scs, a session lasts for a day, used or not, and so does its cookie. A session
// that was moved ends when it would have ended in scs.
func TestASessionOfSCSLastsADay(t *testing.T) {
	fromSCS(t, func(*scs.SessionManager, *library) {}, func(s *site) {
		v := s.ann()
		second := s.visitor(v.Jar.Cookies(s.address)...) // both visitors have moved the session, as in a burst
		redistest.Elapse(time.Hour)
		if c := v.newCookie(); c.MaxAge != int(day.Seconds()) {
			s.Errorf("the browser keeps the cookie for %d s", c.MaxAge)
		}
		second.want("/me", 200, ann)
		redistest.Elapse(23*time.Hour - time.Second)
		v.want("/me", 200, ann)
		second.want("/me", 200, ann)
		redistest.Elapse(2 * time.Second)
		v.want("/me", 200, " 3 {Main Street 5}")
		second.want("/me", 200, " 3 {Main Street 5}")
	})
}

// After a rollback, a login in scs keeps the marks of the move. The second deploy moves the session anew.
func TestALoginInARollbackToSCS(t *testing.T) {
	fromSCS(t, func(*scs.SessionManager, *library) {}, func(s *site) {
		v := s.ann()
		back := s.visitor(v.Jar.Cookies(s.address)...)
		v.want("/me", 200, ann)
		redistest.Elapse(30 * time.Minute)
		back.want("/old/login", 200, "")
		old := back.Jar.Cookies(s.address)
		redistest.Elapse(time.Hour)
		back.want("/me", 200, ann)
		redistest.Elapse(time.Hour + time.Second)
		s.visitor(old...).want("/me", 200, nobody)
		redistest.Elapse(22*time.Hour - 2*time.Second) // a day after the second login
		back.want("/me", 200, ann)
		redistest.Elapse(2 * time.Second)
		back.want("/me", 200, " 3 {Main Street 5}")
	})
}

// A login in a rollback also counts if sessions are short and the first new session has ended.
func TestALoginInARollbackToSCSWithShortSessions(t *testing.T) {
	fromSCS(t, func(m *scs.SessionManager, l *library) { m.Lifetime = 2 * time.Hour }, func(s *site) {
		v := s.ann()
		back := s.visitor(v.Jar.Cookies(s.address)...)
		v.want("/me", 200, ann)
		v.want("/logout", 200, "")
		redistest.Elapse(30 * time.Minute)
		back.want("/old/login", 200, "")
		back.want("/me", 200, ann)
	})
}

// With gorilla, a login in a rollback keeps the mark, too. An hour after the move the old cookie is worthless, however
// long the session lasts.
func TestALoginInARollbackToGorilla(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, redis *redistest.Server) {
		s := newSite(t, libraries["gorilla, sessions in Redis"](t, redis), redis.Another(t))
		v := s.ann()
		back := s.visitor(v.Jar.Cookies(s.address)...)
		v.want("/me", 200, ann)
		redistest.Elapse(30 * time.Minute)
		back.want("/old/login", 200, "")
		redistest.Elapse(31 * time.Minute)
		back.want("/me", 200, nobody)
	})
}

// An idle timeout is kept. A cookie that ended with the browser still does.
func TestTheIdleTimeoutOfSCSStays(t *testing.T) {
	fromSCS(t, func(m *scs.SessionManager, _ *library) {
		m.IdleTimeout, m.Cookie.Persist = 20*time.Minute, false
	}, func(s *site) {
		v := s.ann()
		if c := v.newCookie(); c.MaxAge != 0 {
			s.Errorf("the browser keeps the cookie for %d s", c.MaxAge)
		}
		redistest.Elapse(19 * time.Minute)
		v.want("/me", 200, ann)
		redistest.Elapse(21 * time.Minute)
		v.want("/me", 200, nobody)
	})
}

// A visitor whom scs remembered is still remembered.
func TestRememberMeOfSCSStays(t *testing.T) {
	fromSCS(t, func(m *scs.SessionManager, l *library) {
		m.Cookie.Persist = false
		login := l.login
		l.login = m.LoadAndSave(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			m.RememberMe(r.Context(), true)
			login.ServeHTTP(w, r)
		}))
	}, func(s *site) {
		v := s.ann()
		redistest.Elapse(time.Hour)
		if c := v.newCookie(); c.MaxAge != int((23 * time.Hour).Seconds()) {
			s.Errorf("the browser keeps the cookie for %d s", c.MaxAge)
		}
	})
}

// With the default settings of gorilla, a session lasts for a month after its last use.
func TestASessionOfGorillaLastsAMonth(t *testing.T) {
	fromCookie(t, func(s *site, _ *sessions.CookieStore) {
		v := s.ann()
		if c := v.newCookie(); c.MaxAge < int((30 * day).Seconds()) {
			s.Errorf("the browser keeps the cookie for %d s", c.MaxAge)
		}
		for range 2 {
			redistest.Elapse(29 * day)
			v.want("/me", 200, ann)
		}
		redistest.Elapse(31 * day)
		v.want("/me", 200, nobody)
	})
}

// A Redis whose Unix socket is gone is unavailable, although the error is also that of a file that does not
// exist.
func TestTheSocketOfGorillasRedisIsGone(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, redis *redistest.Server) {
		pool := redis.Pool(t, 4)
		store, err := redistore.NewRediStoreWithPool(pool, make([]byte, 32))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		s := newSite(t, fromGorilla(store, store.Options, true), redis.Another(t))
		v := s.ann()
		dial, test := pool.Dial, pool.TestOnBorrow
		pool.Dial = func() (redigo.Conn, error) { return redigo.Dial("unix", t.TempDir()+"/redis.sock") }
		pool.TestOnBorrow = func(redigo.Conn, time.Time) error { return errors.New("it is closed") }
		v.want("/me", 503, "*")
		pool.Dial, pool.TestOnBorrow = dial, test
		v.want("/me", 200, ann)
	})
}

// A MaxAge of less than an hour is not extended to an hour.
func TestAShortMaxAgeOfGorillaStays(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, redis *redistest.Server) {
		store, err := redistore.NewRediStoreWithPool(redis.Pool(t, 4), make([]byte, 32))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		l := fromGorilla(store, store.Options, true) // the new session lasts for a month
		store.Options.MaxAge = 600
		s := newSite(t, l, redis.Another(t))
		v := s.ann()
		old := v.Jar.Cookies(s.address)
		v.want("/me", 200, ann)
		redistest.Elapse(10*time.Minute - time.Second)
		s.visitor(old...).want("/me", 200, ann)
		redistest.Elapse(2 * time.Second)
		s.visitor(old...).want("/me", 200, nobody)
	})
}

// A deadline later than Lifetime is kept, up to what a browser allows. A cookie that ended with the browser still
// does.
func TestADeadlineOfSCSStays(t *testing.T) {
	for _, c := range []struct {
		deadline time.Duration
		persist  bool
		maxAge   time.Duration
	}{{30 * day, true, 30 * day}, {500 * day, true, 400 * day}, {30 * day, false, 0}} {
		t.Run(fmt.Sprint(c.deadline, c.persist), func(t *testing.T) {
			fromSCS(t, func(m *scs.SessionManager, l *library) {
				m.Cookie.Persist = c.persist
				login := l.login
				l.login = m.LoadAndSave(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					login.ServeHTTP(w, r)
					m.SetDeadline(r.Context(), time.Now().Add(c.deadline))
				}))
			}, func(s *site) {
				v := s.ann()
				if got := v.newCookie().MaxAge; got != int(c.maxAge.Seconds()) {
					s.Errorf("the browser keeps the cookie for %d s", got)
				}
				redistest.Elapse(max(day, c.maxAge) - time.Second)
				v.want("/me", 200, ann)
			})
		})
	}
}

// fromCookie runs a test with a site that has used gorilla's CookieStore.
func fromCookie(t *testing.T, f func(s *site, old *sessions.CookieStore)) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, redis *redistest.Server) {
		store := sessions.NewCookieStore(make([]byte, 32))
		store.Options.Secure = false
		f(newSite(t, fromGorilla(store, store.Options, false), redis), store)
	})
}

// If the store has another Path than the sessions had, the old cookie stays, and no logout removes it.
func TestThePathOfGorillasCookie(t *testing.T) {
	fromCookie(t, func(s *site, old *sessions.CookieStore) {
		v := s.ann()
		old.Options.Path = "/other"
		v.want("/logout", 200, "")
		v.want("/me", 200, ann)
		old.Options.Path = "/"
		v = s.ann()
		v.want("/logout", 200, "")
		v.want("/me", 200, nobody)
	})
}

// adopt may decide for each session whether its cookie ends with the browser.
func TestAdoptRemembers(t *testing.T) {
	fromCookie(t, func(s *site, _ *sessions.CookieStore) {
		s.adopt = func(_ context.Context, s *session.Session) error {
			s.Remember(day)
			return nil
		}
		if c := s.ann().newCookie(); c.MaxAge != int(day.Seconds()) {
			s.Errorf("the browser keeps the cookie for %d s", c.MaxAge)
		}
	})
}

// A cookie that ended with the browser still does.
func TestGorillaWithoutMaxAge(t *testing.T) {
	t.Parallel()
	if o := OptionsOfGorilla(&sessions.Options{}); o.Cookie.MaxAge != 0 || o.TTL != 0 {
		t.Errorf("the options are %+v", o)
	}
}

// The cookie may have fields that are not carried over.
func TestFieldsOfTheCookie(t *testing.T) {
	t.Parallel()
	o := OptionsOfSCS(&blank)
	o.Keys = [][]byte{bytes.Repeat([]byte("key"), 11)}
	o.Cookie.Name, o.Cookie.Domain, o.Cookie.Path = "shop-session", "shop.test", "/shop"
	o.Cookie.SameSite, o.Cookie.Partitioned = http.SameSiteNoneMode, true
	st := store.New(redistest.Embedded(t).Pool(t, 1), store.Options{})
	t.Cleanup(func() { st.Close() })
	if _, err := middleware.New(st, o); err != nil {
		t.Error(err)
	}
	o.Cookie.Name = "__Host-session"
	if _, err := middleware.New(st, o); err == nil {
		t.Error("a cookie named __Host- may have a Domain")
	}
}

// LoggedIn also works in a session that was not moved, with any type, and if there was a Login since the move.
func TestLoggedIn(t *testing.T) {
	t.Parallel()
	var s session.Session
	want := func(when string, user int, is bool) {
		t.Helper()
		if got, ok := LoggedIn[int](&s, "userID"); got != user || ok != is {
			t.Errorf("%s %d is logged in: %v; want %d: %v", when, got, ok, user, is)
		}
	}
	want("at first", 0, false)
	s.Set("userID", 42)
	want("not moved,", 42, true)
	s.Set(endsAt, time.Now().Add(time.Hour).UnixMilli())
	want("in time", 42, true)
	s.Set(endsAt, time.Now().UnixMilli())
	want("after the end", 0, false)
	s.Delete(endsAt)
	want("after Delete", 42, true)
	s.Set(endsAt, time.Now().UnixMilli())
	s.Login("43")
	s.Set("userID", 43)
	want("after another login", 43, true)
}
