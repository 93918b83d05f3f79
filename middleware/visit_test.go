package middleware_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// inFakeTime runs f as a subtest, in fake time, with a Redis of its own.
func inFakeTime(t *testing.T, name string, f func(t *testing.T, r *redistest.Server)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		redistest.InFakeTime(t, f)
	})
}

// begun serves mux, and returns a visitor whose session has n = 1.
func begun(t *testing.T, r *redistest.Server, o middleware.Options, mux http.Handler) (*site, *visitor) {
	t.Helper()
	s, v := newSite(t, r.Pool(t, 4), o, mux), newVisitor(t)
	v.get(s.URL+"/add").want(t, 200, "1")
	return s, v
}

// start sends a request and does not wait for its answer.
func (v *visitor) start(url string) chan answer {
	done := make(chan answer, 1)
	go func() { done <- v.get(url) }()
	return done
}

// handle adds a handler that uses the session.
func handle(mux *http.ServeMux, path string, h func(s *session.Session, w http.ResponseWriter, req *http.Request)) {
	mux.HandleFunc(path, func(w http.ResponseWriter, req *http.Request) { h(session.FromContext(req.Context()), w, req) })
}

// everywhere lets the visitor have one session with several sites: processes of one program have
// one name for their visitors.
func (v *visitor) everywhere() *visitor {
	v.Jar = oneName{v.Jar}
	return v
}

type oneName struct{ http.CookieJar }

func (j oneName) Cookies(*url.URL) []*http.Cookie           { return j.CookieJar.Cookies(nameOfAll) }
func (j oneName) SetCookies(_ *url.URL, set []*http.Cookie) { j.CookieJar.SetCookies(nameOfAll, set) }

var nameOfAll = &url.URL{Scheme: "http", Host: "site.memory"}
