package middleware_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// A GET without a body is optimistic over any protocol, and with a limit for bodies around the
// sessions: it holds nothing while its handler runs, which has no body in either run.
func TestOptimisticOverAnyServer(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	for name, serve := range map[string]func(http.Handler) *httptest.Server{
		"HTTP/1.1":         httptest.NewServer,
		"HTTP/2":           newHTTP2Server,
		"MaxBytesHandler":  func(h http.Handler) *httptest.Server { return httptest.NewServer(http.MaxBytesHandler(h, 1)) },
		"the same, HTTP/2": func(h http.Handler) *httptest.Server { return newHTTP2Server(http.MaxBytesHandler(h, 1)) },
	} {
		elsewhere := newSite(t, r.Pool(t, 2), middleware.Options{LockWait: 100 * time.Millisecond}, app())
		v := newVisitor(t)
		v.post(elsewhere.URL+"/add").want(t, 200, "1")
		runs := 0
		here := newSite(t, r.Pool(t, 2), middleware.Options{Mode: optimisticGets}, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			body, err := io.ReadAll(req.Body)
			if err != nil || len(body) > 0 || req.Body.Close() != nil {
				t.Errorf("%s: the body is %q, %v", name, body, err)
			}
			if runs++; runs == 1 {
				v.post(elsewhere.URL+"/add").want(t, 200, "2")
			}
			fmt.Fprint(w, add(session.FromContext(req.Context())))
		}))
		srv := serve(here.Config.Handler)
		t.Cleanup(srv.Close)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
		must(t, err)
		for _, c := range v.cookies(elsewhere) {
			req.AddCookie(c)
		}
		(&visitor{t: t, Client: srv.Client()}).do(req).want(t, 200, "3")
		if runs != 2 {
			t.Errorf("%s: the handler ran %d times", name, runs)
		}
	}
}

func newHTTP2Server(h http.Handler) *httptest.Server {
	srv := httptest.NewUnstartedServer(h)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	return srv
}
