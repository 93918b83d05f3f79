package middleware_test

import (
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// P8: Redis falls silent while requests hold the session or wait for it. Whatever they
// do, and wherever they are in line, all are answered within the Timeout and a quarter.
func TestRedisFallsSilentAndAllAreAnsweredInTime(t *testing.T) {
	t.Parallel()
	const timeout = 400 * time.Millisecond
	const maxBytes = 4 << 10 // which /large exceeds
	for name, paths := range map[string][]string{
		"one":                            {"/add"},
		"one that reads":                 {"/get"},
		"a login":                        {"/login"},
		"a logout":                       {"/logout"},
		"a panic":                        {"/panic"},
		"a crowd":                        {"/add", "/add", "/add", "/add", "/add"},
		"a crowd of readers":             {"/get", "/get", "/get", "/get", "/get"},
		"a login last in a crowd":        {"/add", "/add", "/add", "/login"},
		"a panic last in a crowd":        {"/add", "/add", "/add", "/panic"},
		"a panic amid a crowd":           {"/add", "/add", "/panic", "/add", "/add"},
		"one too large, last in a crowd": {"/add", "/add", "/large"},
		"a slow one amid a crowd":        {"/add", "/slow", "/add", "/add", "/add"},
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			busy, free := make(chan struct{}), make(chan struct{})
			first := sync.OnceFunc(func() {
				close(busy)
				<-free
			})
			mux := app()
			mux.HandleFunc("/panic", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
			handle(mux, "/large", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) {
				s.Set("large", make([]byte, maxBytes))
			})
			handle(mux, "/slow", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) {
				<-time.After(30 * time.Millisecond) // longer than requests run ahead of Redis
				s.Set("slow", 1)
			})
			mux.HandleFunc("/first/{path}", func(w http.ResponseWriter, r *http.Request) {
				first()
				http.StripPrefix("/first", mux).ServeHTTP(w, r)
			})
			st := store.New(r.Pool(t, 8), store.Options{Lease: 5 * time.Second, Timeout: timeout})
			s := newSiteOn(t, st, middleware.Options{LockWait: time.Minute, MaxBytes: maxBytes}, mux)
			v := newVisitor(t)
			v.get(s.URL+"/add").want(t, 200, "1")

			var began time.Time // of the silence
			var line sync.WaitGroup
			for i, path := range paths {
				if i == 0 {
					path = "/first" + path
				}
				line.Go(func() {
					a := v.post(s.URL + path)
					if took := time.Since(began); took > timeout*5/4 {
						t.Errorf("request %d, %s, was answered %v after Redis fell silent", i, path, took)
					}
					if a.err == nil && a.StatusCode < 400 {
						t.Errorf("request %d, %s: %d, though Redis is silent", i, path, a.StatusCode)
					}
				})
				synctest.Wait() // the next one is behind it
			}
			<-busy
			r.Pause(t)
			began = time.Now()
			close(free)
			line.Wait()
			r.Resume(t)
			redistest.Elapse(time.Second)
			v.get(s.URL+"/nothing").want(t, 200, "")
		})
	}
}
