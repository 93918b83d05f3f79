package middleware_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// P2 and P7: a panic saves nothing, frees the lock, leaves nothing in the
// header, and goes on as a panic.
func TestAPanicReleasesTheLockAndSavesNothing(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		before := func(w http.ResponseWriter, req *http.Request) {
			session.FromContext(req.Context()).Set("n", 66)
			w.Header().Set("X-Handler", "yes")
			fmt.Fprint(w, "half an answer")
		}
		mux.HandleFunc("/panic", func(w http.ResponseWriter, req *http.Request) { before(w, req); panic("boom") })
		mux.HandleFunc("/abort", func(w http.ResponseWriter, req *http.Request) { before(w, req); panic(http.ErrAbortHandler) })
		mux.HandleFunc("/goexit", func(w http.ResponseWriter, req *http.Request) { before(w, req); runtime.Goexit() })
		mux.HandleFunc("/later", func(w http.ResponseWriter, req *http.Request) {
			before(w, req)
			w.(http.Flusher).Flush()
			panic("boom")
		})
		s, v := begun(t, r, middleware.Options{}, mux)
		for _, path := range []string{"/panic", "/abort"} {
			if a := v.post(s.URL + path); a.err == nil {
				t.Errorf("%s: answered %d %q", path, a.StatusCode, a.body)
			}
			v.get(s.URL+"/get").want(t, 200, "1")
		}
		if n := len(s.log.Lines("panic serving")); n != 1 {
			t.Errorf("net/http has seen %d panics with a trace, want 1", n)
		}
		// The first byte has left, so the session was saved, as promised.
		if a := v.post(s.URL + "/later"); a.err == nil {
			t.Errorf("/later: the answer looks complete")
		}
		v.get(s.URL+"/get").want(t, 200, "66")
		if a := v.post(s.URL + "/goexit"); a.err == nil {
			t.Errorf("/goexit: answered %d %q", a.StatusCode, a.body)
		}
		v.get(s.URL+"/add").want(t, 200, "67")
	})
}

// A handler around the sessions that recovers from panics answers as if the handler
// inside had never begun.
func TestAnOuterRecoverSeesACleanHeader(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		sessions, err := middleware.New(store.New(r.Pool(t, 4), store.Options{}), middleware.Options{Keys: [][]byte{testKey}})
		if err != nil {
			t.Fatal(err)
		}
		inner := sessions.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Handler", "yes")
			w.Header().Set("X-Outer", "changed")
			w.WriteHeader(201)
			panic("boom")
		}))
		s := newSite(t, r.Pool(t, 1), middleware.Options{Mode: func(*http.Request) middleware.Mode { return middleware.None }},
			http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				w.Header().Set("X-Outer", "kept")
				defer func() {
					if recover() != nil {
						http.Error(w, "sorry", 500)
					}
				}()
				inner.ServeHTTP(w, req)
			}))
		a := newVisitor(t).get(s.URL)
		a.want(t, 500, "sorry")
		if a.Header.Get("X-Handler") != "" || a.Header.Get("X-Outer") != "kept" {
			t.Errorf("%v", a.Header)
		}
	})
}

// A framework that keeps the writer of the handler inside recovers outside and answers through it,
// as echo does: that is an answer, and it is as if the handler had never run.
func TestARecoverMayAnswerThroughTheInnerWriter(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	sorry := strings.Repeat("sorry", 20_000)
	for name, recovered := range map[string]func(w http.ResponseWriter){
		"write": func(w http.ResponseWriter) { http.Error(w, sorry, 500) },
		"copy":  func(w http.ResponseWriter) { w.WriteHeader(500); _, _ = io.Copy(w, strings.NewReader(sorry)) },
		"flush": func(w http.ResponseWriter) { w.WriteHeader(500); w.(http.Flusher).Flush(); fmt.Fprint(w, sorry) },
		"hijack": func(w http.ResponseWriter) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			fmt.Fprintf(conn, "HTTP/1.1 500 Sorry\r\nX-Outer: kept\r\n\r\n%s", sorry)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var current http.ResponseWriter
			s := around(t, r, middleware.Options{}, func(sessions func(http.Handler) http.Handler) http.Handler {
				inner := sessions(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					current = w
					w.Header().Set("X-Handler", "yes")
					w.Header().Set("Content-Length", strconv.Itoa(len(sorry)))
					session.FromContext(req.Context()).Set("n", 5)
					fmt.Fprint(w, "half")
					panic("boom")
				}))
				return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					w.Header().Set("X-Outer", "kept")
					defer func() {
						if recover() != nil {
							recovered(current)
						}
					}()
					inner.ServeHTTP(w, req)
				})
			})
			a := newVisitor(t).post(s.URL)
			a.want(t, 500, sorry)
			if a.Header.Get("X-Handler") != "" || a.Header.Get("X-Outer") != "kept" || a.sets() {
				t.Errorf("%v", a.Header)
			}
		})
	}
}

// What a handler had committed before it panicked is saved, so an answer has its cookie, or the
// visitor would lose the session. That the handler broke the rule then is no obstacle.
func TestTheCookieOfACommitOutlivesAPanic(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		handle(mux, "/panic", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
			s.Renew()
			_ = s.Commit(req.Context())
			s.Set("n", 9)
			panic("boom")
		})
		s := around(t, r, middleware.Options{}, func(sessions func(http.Handler) http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				defer func() {
					if recover() != nil {
						http.Error(w, "sorry", 500)
					}
				}()
				sessions(mux).ServeHTTP(w, req)
			})
		})
		v := newVisitor(t)
		v.get(s.URL+"/add").want(t, 200, "1")
		a := v.post(s.URL + "/panic")
		a.want(t, 500, "sorry")
		if a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%v", a.Header)
		}
		v.get(s.URL+"/add").want(t, 200, "2")
	})
}

// A Commit after the handler's panic must not report that the session was saved.
func TestCommitAfterAPanicIsAnError(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		panicked, committed := make(chan struct{}), make(chan error, 1)
		mux := app()
		handle(mux, "/panic", func(s *session.Session, _ http.ResponseWriter, req *http.Request) {
			go func() {
				<-panicked
				committed <- s.Commit(req.Context())
			}()
			s.Set("n", 5)
			panic(http.ErrAbortHandler)
		})
		s, v := begun(t, r, middleware.Options{}, mux)
		if a := v.post(s.URL + "/panic"); a.err == nil {
			t.Errorf("answered %d", a.StatusCode)
		}
		close(panicked)
		if err := <-committed; err == nil || !strings.Contains(err.Error(), "panicked") {
			t.Errorf("Commit returned %v", err)
		}
	})
}

// What the application has put into the options may panic, too: the lock is free afterwards, also
// where something inside the sessions recovers.
func TestAPanicInAnOptionFreesTheLock(t *testing.T) {
	t.Parallel()
	panics := func(context.Context) { panic("an option") }
	lazy := func(*http.Request) middleware.Mode { return middleware.Lazy }
	for name, o := range map[string]middleware.Options{
		"Logger":    {Logger: slog.New(handling{slog.DiscardHandler, panics})},
		"OnCorrupt": {Mode: lazy, OnCorrupt: func(*http.Request, error) error { panic("an option") }},
	} {
		for where, recovers := range map[string]bool{"inside": true, "outside": false} {
			t.Run(name+" recovered "+where, func(t *testing.T) {
				t.Parallel()
				r := redistest.Embedded(t)
				site := newSite(t, r.Pool(t, 4), middleware.Options{}, app())
				cookie, id := site.count(t, 1)
				record, lock := keysOf(id)
				if name == "OnCorrupt" {
					r.Do(t, "SET", record, "damaged", "KEEPTTL")
				}
				s := newSessions(t, r, o)
				recovered := false
				caught := func() { recovered = recover() != nil || recovered }
				req := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
				req.AddCookie(cookie)
				func() {
					defer caught()
					s.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if recovers {
							defer caught()
						}
						own, err := session.Start(r.Context())
						if err != nil {
							t.Error(err)
							return
						}
						own.Destroy()
						own.Set("dropped", "which is logged")
						if recovers {
							_ = own.Commit(r.Context())
						}
					})).ServeHTTP(httptest.NewRecorder(), req)
				}()
				if !recovered {
					t.Error("nothing has panicked")
				}
				eventually(t, "the lock is free", func() bool { return !r.Exists(t, lock) })
			})
		}
	}
}
