package middleware_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// P4: a logout in a session that has ended leaves the cookies alone, since they may be of a login
// that came meanwhile; so does a request that calls Renew as well, or a page.
func TestALogoutInAnEndedSessionLeavesTheCookie(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	mux := app()
	mux.HandleFunc("/both", func(w http.ResponseWriter, req *http.Request) {
		mux.ServeHTTP(w, as(req, "/login"))
		mux.ServeHTTP(w, as(req, "/logout"))
	})
	s := newSite(t, r.Pool(t, 4), middleware.Options{}, mux)
	v := newVisitor(t)
	v.get(s.URL+"/add").want(t, 200, "1")
	with(t, v.cookies(s)...).get(s.URL+"/logout").want(t, 200, "")
	keys := len(r.Keys(t))
	for _, path := range []string{"/logout", "/both"} {
		for _, a := range []answer{v.background("POST", s.URL+path), v.navigate("POST", s.URL+path)} {
			if a.StatusCode != 200 || a.sets() || len(r.Keys(t)) != keys {
				t.Errorf("%s: %d, header %v, keys %v", path, a.StatusCode, a.Header, r.Keys(t))
			}
		}
	}
}

// Until its commit, a request in an ended session has the ended id; then that of the new session.
// If the commit fails the client keeps its cookie, and the log names the session it came for.
func TestTheIDInAnEndedSession(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		down := false
		mux.HandleFunc("/ids", func(w http.ResponseWriter, req *http.Request) {
			s := session.FromContext(req.Context())
			before := s.ID()
			s.Set("n", 1)
			if down {
				r.Stop(t)
			}
			err := s.Commit(req.Context())
			fmt.Fprint(w, before, " ", s.ID(), " ", err)
		})
		s := newSite(t, r.Pool(t, 4), middleware.Options{}, mux)
		v := newVisitor(t)
		v.get(s.URL+"/add").want(t, 200, "1")
		dead := v.get(s.URL + "/id").body
		old := with(t, v.cookies(s)...)
		old.get(s.URL+"/logout").want(t, 200, "")

		var before, after, err string
		a := v.navigate("POST", s.URL+"/ids")
		if _, scanned := fmt.Sscan(a.body, &before, &after, &err); scanned != nil || before != dead || after == dead || err != "<nil>" {
			t.Fatalf("%d %s", a.StatusCode, a.body)
		}
		if record, _ := keysOf(after); !r.Exists(t, record) || v.get(s.URL+"/id").body != after {
			t.Errorf("%s is not the session's id", after)
		}

		down = true
		a = old.navigate("POST", s.URL+"/ids")
		a.want(t, 503, "*")
		if lines := s.log.Lines("session=" + dead); a.sets() || len(lines) != 1 {
			t.Errorf("header %v, log:\n%s", a.Header, s.log)
		}
	})
}

// A page that streams gets the new session's cookie with its header, and a request that may only
// read begins none.
func TestStreamsAndReadersInAnEndedSession(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	mux := app()
	mux.HandleFunc("/stream", func(w http.ResponseWriter, req *http.Request) {
		session.FromContext(req.Context()).Set("n", 7)
		w.(http.Flusher).Flush()
		fmt.Fprint(w, "event")
	})
	mux.HandleFunc("/renew", func(_ http.ResponseWriter, req *http.Request) { session.FromContext(req.Context()).Renew() })
	s := newSite(t, r.Pool(t, 4), middleware.Options{Mode: func(req *http.Request) middleware.Mode {
		if req.Method == http.MethodPut {
			return middleware.ReadOnly
		}
		return middleware.Exclusive
	}}, mux)
	v := newVisitor(t)
	v.get(s.URL+"/add").want(t, 200, "1")
	with(t, v.cookies(s)...).get(s.URL+"/logout").want(t, 200, "")
	for _, path := range []string{"/add", "/login"} {
		a := v.navigate(http.MethodPut, s.URL+path)
		a.want(t, 500, "*")
		if a.sets() {
			t.Errorf("%s: header %v", path, a.Header)
		}
	}
	v.background("POST", s.URL+"/stream").want(t, 409, "*")
	v.navigate("GET", s.URL+"/stream").want(t, 200, "event")
	v.get(s.URL+"/get").want(t, 200, "7")

	// A Renew alone asks for an id that is worth something.
	with(t, v.cookies(s)...).get(s.URL+"/logout").want(t, 200, "")
	v.background("POST", s.URL+"/renew").want(t, 200, "")
	v.background("POST", s.URL+"/add").want(t, 200, "1")
}

// P4: what ends a session that a request holds ends what is under way in it, also a login. The
// visitor's next try begins a new session.
func TestALoginInASessionThatIsEndedMeanwhile(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		mux := welcoming()
		lose := true
		mux.HandleFunc("/cut", func(w http.ResponseWriter, req *http.Request) {
			if lose {
				lose = false
				r.Do(t, "DEL", recordOf(session.FromContext(req.Context()).ID()))
			}
			mux.ServeHTTP(w, as(req, "/login"))
		})
		s := newSite(t, r.Pool(t, 4), middleware.Options{}, mux)
		v := newVisitor(t)
		v.get(s.URL+"/add").want(t, 200, "1")
		a := v.navigate("POST", s.URL+"/cut")
		a.want(t, 503, "*")
		if a.sets() {
			t.Errorf("header %v", a.Header)
		}
		eventually(t, "what the login had stored is removed", func() bool { return len(r.Keys(t)) == 0 })
		v.navigate("POST", s.URL+"/cut").want(t, 200, "")
		v.get(s.URL+"/user").want(t, 200, "ann")
	})
}

// P9: a Start that is repeated does not remember what an earlier one came for: if the session is
// unknown by then, the new one has an id that nobody knows.
func TestARepeatedStartAdoptsNoID(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		busy, free := holding(mux)
		holder := newSite(t, r.Pool(t, 4), middleware.Options{}, mux)
		var old string
		lazy := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if _, err := session.Start(req.Context()); err == nil {
				t.Error("the session is held, and Start has it")
			}
			r.Do(t, "DEL", recordOf(old), recordOf(old)+".lock")
			s, err := session.Start(req.Context())
			if err != nil {
				t.Error(err)
				return
			}
			s.Set("n", 7)
		})
		s := newSite(t, r.Pool(t, 4), middleware.Options{LockWait: time.Millisecond,
			Mode: func(*http.Request) middleware.Mode { return middleware.Lazy }}, lazy)
		v := newVisitor(t)
		v.get(holder.URL+"/add").want(t, 200, "1")
		old = v.get(holder.URL + "/id").body
		held := make(chan answer, 1)
		elsewhere := with(t, v.cookies(holder)...)
		go func() { held <- elsewhere.get(holder.URL + "/hold") }()
		<-busy
		v.get(s.URL).want(t, 200, "")
		close(free)
		<-held
		if r.Exists(t, recordOf(old)) {
			t.Error("the old id was adopted")
		}
		v.get(holder.URL+"/get").want(t, 200, "7")
	})
}
