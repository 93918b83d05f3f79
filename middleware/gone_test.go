package middleware_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// navigate is what a click does.
func (v *visitor) navigate(method, url string) answer {
	return v.fetch(context.Background(), method, url, "navigate")
}

// background is what a script does.
func (v *visitor) background(method, url string) answer {
	return v.fetch(context.Background(), method, url, "cors")
}

func (v *visitor) fetch(ctx context.Context, method, url, mode string) answer {
	v.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set("Sec-Fetch-Mode", mode)
	return v.do(req)
}

// welcoming is app, with /user, which says who is logged in.
func welcoming() *http.ServeMux {
	mux := app()
	mux.HandleFunc("/user", func(w http.ResponseWriter, r *http.Request) {
		user, _ := session.Get[string](session.FromContext(r.Context()), "user")
		fmt.Fprint(w, user)
	})
	return mux
}

// The ways in which a visitor's session ends, and the visitor's cookie stays.
var endings = map[string]func(t *testing.T, s *site, v *visitor){
	"the answer to a login is lost": func(t *testing.T, s *site, v *visitor) {
		with(t, v.cookies(s)...).get(s.URL+"/login").want(t, 200, "")
	},
	"the answer to a logout is lost": func(t *testing.T, s *site, v *visitor) {
		with(t, v.cookies(s)...).get(s.URL+"/logout").want(t, 200, "")
	},
	"an administrator ends it": func(t *testing.T, s *site, v *visitor) {
		if err := s.sessions.End(t.Context(), v.get(s.URL+"/id").body); err != nil {
			t.Fatal(err)
		}
	},
}

// P4: nobody is shut out. Whatever has ended the session, the visitor can log in at once, and
// go to pages that write; scripts get the 409, and no cookie.
func TestNobodyIsShutOut(t *testing.T) {
	t.Parallel()
	for name, end := range endings {
		for _, mode := range []middleware.Mode{middleware.Exclusive, middleware.Lazy} {
			t.Run(fmt.Sprintf("%s, mode %d", name, mode), func(t *testing.T) {
				t.Parallel()
				redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
					mux := welcoming()
					handler := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
						if _, err := session.Start(req.Context()); err != nil {
							t.Error(err)
						}
						mux.ServeHTTP(w, req)
					})
					s := newSite(t, r.Pool(t, 4), middleware.Options{Mode: func(*http.Request) middleware.Mode { return mode }}, handler)
					begin := func() (v *visitor, old string) {
						v = newVisitor(t)
						v.get(s.URL+"/add").want(t, 200, "1")
						old = v.get(s.URL + "/id").body
						end(t, s, v)
						return v, old
					}

					v, old := begin()
					for _, a := range []answer{
						v.background("POST", s.URL+"/add"), v.get(s.URL + "/add"), // which does not say what it is
					} {
						a.want(t, 409, "The session was ended by another request. Nothing was saved. Please start again.")
						if a.sets() {
							t.Errorf("a background request touches the cookie: %v", a.Header)
						}
					}
					for _, path := range []string{"/get", "/nothing", "/logout"} {
						if a := v.navigate("GET", s.URL+path); a.StatusCode != 200 || a.sets() {
							t.Errorf("%s: %d, header %v", path, a.StatusCode, a.Header)
						}
					}
					a := v.navigate("GET", s.URL+"/add")
					a.want(t, 200, "1") // in a new session, which has nothing of the old one
					if !a.sets() || a.Header.Get("Cache-Control") != "no-store" {
						t.Errorf("header %v", a.Header)
					}
					v.background("POST", s.URL+"/add").want(t, 200, "2")
					if now := v.get(s.URL + "/id").body; now == old {
						t.Error("the dead id is used again")
					}

					v, old = begin()
					v.background("POST", s.URL+"/login").want(t, 200, "")
					v.get(s.URL+"/user").want(t, 200, "ann")
					v.get(s.URL+"/get").want(t, 200, "0")
					if now := v.get(s.URL + "/id").body; now == old {
						t.Error("the dead id is used again")
					}
				})
			})
		}
	}
}

// P4: a double click on "Log in". The browser drops the first request, but its handler has
// begun, and what it does is saved. The second one is logged in.
func TestADoubleClickOnLogin(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		mux := welcoming()
		busy, free := make(chan struct{}, 2), make(chan struct{})
		mux.HandleFunc("/slow-login", func(w http.ResponseWriter, req *http.Request) {
			busy <- struct{}{}
			<-free // the password is being hashed
			mux.ServeHTTP(w, as(req, "/login"))
		})
		s := newSite(t, r.Pool(t, 4), middleware.Options{}, mux)
		v := newVisitor(t)
		v.get(s.URL+"/add").want(t, 200, "1")
		old := v.cookies(s)

		ctx, drop := context.WithCancel(t.Context())
		first, second := make(chan answer, 1), make(chan answer, 1)
		go func() { first <- v.fetch(ctx, "POST", s.URL+"/slow-login", "navigate") }()
		<-busy
		drop()
		if a := <-first; a.err == nil {
			t.Fatalf("the first click was answered: %d", a.StatusCode)
		}
		go func() { second <- v.navigate("POST", s.URL+"/slow-login") }()
		close(free)
		a := <-second
		a.want(t, 200, "")
		if !a.sets() {
			t.Error("the second click got no cookie")
		}
		v.get(s.URL+"/user").want(t, 200, "ann")
		with(t, old...).get(s.URL+"/user").want(t, 200, "") // and the old id opens neither
		with(t, old...).background("POST", s.URL+"/add").want(t, 409, "*")
	})
}

// P4: a script's request was under way when the visitor logged in, and is answered after it.
// Its answer does not take the new cookie away.
func TestABackgroundAnswerDoesNotUndoALogin(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		came, pass := make(chan struct{}), make(chan struct{})
		s := newSite(t, r.Pool(t, 4), middleware.Options{Mode: func(req *http.Request) middleware.Mode {
			if req.Header.Get("X-Late") != "" {
				close(came)
				<-pass
			}
			return middleware.Exclusive
		}}, welcoming())
		v := newVisitor(t)
		v.get(s.URL+"/add").want(t, 200, "1")
		late, _ := http.NewRequest("POST", s.URL+"/add", nil)
		late.Header.Set("X-Late", "yes")
		late.Header.Set("Sec-Fetch-Mode", "cors")
		saving := make(chan answer, 1)
		go func() { saving <- v.do(late) }()
		<-came
		v.navigate("POST", s.URL+"/login").want(t, 200, "")
		close(pass)
		(<-saving).want(t, 409, "*")
		v.get(s.URL+"/user").want(t, 200, "ann")
	})
}

// P4, its limit: a page that writes was under way in another tab when the visitor logged in, and
// is answered after it. Then its cookie stays: the visitor has to log in again, and nothing that
// the login's session held is shown to anyone else, or lost in Redis.
func TestAPageThatCrossesALoginWins(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		s := newSite(t, r.Pool(t, 4), middleware.Options{}, welcoming())
		v := newVisitor(t)
		v.get(s.URL+"/add").want(t, 200, "1")
		old := with(t, v.cookies(s)...) // sent before the login, answered after it
		v.navigate("POST", s.URL+"/login").want(t, 200, "")
		login := with(t, v.cookies(s)...)

		a := old.navigate("GET", s.URL+"/add")
		a.want(t, 200, "1")
		v.Jar.SetCookies(a.Request.URL, a.Cookies())
		v.get(s.URL+"/user").want(t, 200, "")
		v.get(s.URL+"/get").want(t, 200, "1")
		login.get(s.URL+"/user").want(t, 200, "ann")
		login.get(s.URL+"/get").want(t, 200, "1")

		v.navigate("POST", s.URL+"/login").want(t, 200, "")
		v.get(s.URL+"/user").want(t, 200, "ann")
	})
}
