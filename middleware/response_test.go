package middleware_test

import (
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// touched makes a handler save a new session.
func touched(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Set("seen", true)
		h(w, r)
	}
}

// quiet serves h and logs nothing of its mistakes, which are made on purpose.
func quiet(h http.Handler) *httptest.Server {
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.Start()
	return srv
}

// All defaults work over HTTP/2 with TLS, including the __Host- cookie.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		sessions, err := middleware.New(store.New(r.Pool(t, 4), store.Options{}), middleware.Options{
			Keys: [][]byte{testKey}, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		mux := app()
		mux.HandleFunc("/late", func(w http.ResponseWriter, req *http.Request) {
			w.(http.Flusher).Flush()
			session.FromContext(req.Context()).Set("n", 9)
		})
		srv := httptest.NewUnstartedServer(sessions.Handler(mux))
		srv.EnableHTTP2 = true
		srv.StartTLS()
		defer srv.Close()
		v := newVisitor(t)
		v.Transport = srv.Client().Transport
		a := v.get(srv.URL + "/add")
		a.want(t, 200, "1")
		if a.ProtoMajor != 2 {
			t.Fatalf("%s", a.Proto)
		}
		v.get(srv.URL+"/add").want(t, 200, "2")
		if a := v.post(srv.URL + "/late"); a.err == nil {
			t.Errorf("the answer looks complete: %d %q", a.StatusCode, a.body)
		}
		v.get(srv.URL+"/add").want(t, 200, "3")
	})
}

// A client that sends its body slowly does not hold its session meanwhile.
func TestASlowBodyHoldsNothing(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		mux.HandleFunc("/form", func(w http.ResponseWriter, req *http.Request) {
			session.FromContext(req.Context()).Set("n", 40)
			fmt.Fprint(w, req.PostFormValue("a"))
		})
		s, v := begun(t, r, middleware.Options{LockWait: 5 * time.Second}, mux)
		body, slow := io.Pipe()
		req, err := http.NewRequest(http.MethodPost, s.URL+"/form", body)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = 7
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		done := make(chan answer, 1)
		go func() { done <- v.do(req) }()
		if _, err := io.WriteString(slow, "a=1"); err != nil { // the server is reading it
			t.Fatal(err)
		}
		v.get(s.URL+"/add").want(t, 200, "2")
		if _, err := io.WriteString(slow, "2345"); err != nil {
			t.Fatal(err)
		}
		slow.Close()
		(<-done).want(t, 200, "12345")
		v.get(s.URL+"/get").want(t, 200, "40")
	})
}
