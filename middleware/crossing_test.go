package middleware_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
)

// P4: a double click on "Log in". The browser drops the first request, but its handler has
// begun, and what it does is saved. The second one is logged in.
func TestADoubleClickOnLogin(t *testing.T) {
	onEach(t, func(t *testing.T, r *redistest.Server) {
		mux := welcoming()
		busy, free := make(chan struct{}, 2), make(chan struct{})
		mux.HandleFunc("/slow-login", func(w http.ResponseWriter, req *http.Request) {
			busy <- struct{}{}
			<-free // the password is being hashed
			mux.ServeHTTP(w, as(req, "/login"))
		})
		s, v := begun(t, r, middleware.Options{}, mux)
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
		with(t, old...).get(s.URL+"/user").want(t, 200, "") // and the old ID opens neither
		with(t, old...).background("POST", s.URL+"/add").want(t, 409, "*")
	})
}

// P4: a script's request was under way when the visitor logged in, and is answered after it.
// Its response does not take the new cookie away.
func TestABackgroundAnswerDoesNotUndoALogin(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		came, pass := make(chan struct{}), make(chan struct{})
		s, v := begun(t, r, middleware.Options{Mode: func(req *http.Request) middleware.Mode {
			if req.Header.Get("X-Late") != "" {
				close(came)
				<-pass
			}
			return middleware.Exclusive
		}}, welcoming())
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

// P4: A page that writes was under way in another tab when the visitor logged in. Its response comes after the login,
// and begins a guest's session. The visitor stays logged in.
func TestAPageThatCrossesALoginDoesNotUndoIt(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s, v := begun(t, r, middleware.Options{}, welcoming())
		old := with(t, v.cookies(s)...) // sent before the login, answered after it
		v.navigate("POST", s.URL+"/login").want(t, 200, "")

		a := old.navigate("GET", s.URL+"/add")
		a.want(t, 200, "1")
		v.Jar.SetCookies(a.Request.URL, a.Cookies())
		v.get(s.URL+"/user").want(t, 200, "ann")
		v.background("POST", s.URL+"/add").want(t, 200, "2")
	})
}
