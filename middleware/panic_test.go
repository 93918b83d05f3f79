package middleware_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// P2 and P7: a panic saves nothing, frees the lock, leaves nothing in the
// header, and goes on as a panic.
func TestAPanicReleasesTheLockAndSavesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, r *redistest.Server) {
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
		handle(mux, "/reopened", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
			s.Set("kept", true)
			must(t, s.Commit(req.Context()))
			must(t, s.Reopen(req.Context()))
			before(w, req)
			panic(http.ErrAbortHandler)
		})
		s, v := begun(t, r, middleware.Options{}, mux)
		for _, path := range []string{"/panic", "/abort", "/reopened"} {
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

// The error of a failed commit is logged once, also if the handler panics afterwards, before or after the error has become
// the response.
func TestAFailedCommitBeforeAPanicIsLogged(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		handle(mux, "/commit", func(s *session.Session, _ http.ResponseWriter, req *http.Request) {
			s.Set("n", 9)
			deleteAll(t, r)
			_ = s.Commit(req.Context())
			panic("boom")
		})
		handle(mux, "/flush", func(s *session.Session, w http.ResponseWriter, _ *http.Request) {
			s.Set("n", 9)
			deleteAll(t, r)
			w.(http.Flusher).Flush()
			panic("boom")
		})
		for _, path := range []string{"/commit", "/flush"} {
			s, v := begun(t, r, middleware.Options{}, mux)
			v.post(s.URL + path)
			if n := len(s.log.Lines("latchkey: session failed", "route="+path)); n != 1 {
				t.Errorf("%s: %d lines: %s", path, n, s.log)
			}
		}
	})
}

func deleteAll(t *testing.T, r *redistest.Server) {
	t.Helper()
	for _, key := range r.Keys(t) {
		r.Do(t, "DEL", key)
	}
}

// The response has the cookie of a commit that came before the handler's panic, even if the handler changed the
// session after that commit. Otherwise the visitor would lose the saved session.
func TestTheCookieOfACommitOutlivesAPanic(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		handle(mux, "/panic", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
			s.Renew()
			_ = s.Commit(req.Context())
			s.Set("n", 9)
			panic("boom")
		})
		s := around(t, r, middleware.Options{}, func(sessions func(http.Handler) http.Handler) http.Handler {
			return recoverer(sessions(mux))
		})
		v := s.visitor(t)
		a := v.post(s.URL + "/panic")
		a.want(t, 500, "boom")
		if a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%v", a.Header)
		}
		v.get(s.URL+"/add").want(t, 200, "2")
	})
}

// A Commit after the handler's panic must not report that the session was saved.
func TestCommitAfterAPanicIsAnError(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		panicked, committed := make(chan struct{}), make(chan error, 1)
		s, v := begunWith(t, r, middleware.Options{}, "/panic", func(s *session.Session, _ http.ResponseWriter, req *http.Request) {
			go func() {
				<-panicked
				committed <- s.Commit(req.Context())
			}()
			s.Set("n", 5)
			panic(http.ErrAbortHandler)
		})
		if a := v.post(s.URL + "/panic"); a.err == nil {
			t.Errorf("answered %d", a.StatusCode)
		}
		close(panicked)
		if err := <-committed; err == nil || !strings.Contains(err.Error(), "panicked") {
			t.Errorf("Commit returned %v", err)
		}
	})
}

// Functions in the options may panic, too. The lock is free afterwards, even if a handler inside the sessions
// recovers.
func TestAPanicInAnOptionFreesTheLock(t *testing.T) {
	t.Parallel()
	panics := func(context.Context) { panic("an option") }
	lazy := func(*http.Request) middleware.Mode { return middleware.Lazy }
	for name, o := range map[string]middleware.Options{
		"Logger":    {Logger: slog.New(handling{slog.DiscardHandler, panics})},
		"OnCorrupt": {Mode: lazy, OnCorrupt: func(*http.Request, error) error { panic("an option") }},
	} {
		for where, recovers := range map[string]bool{"inside": true, "outside": false} {
			inFakeTime(t, name+" recovered "+where, func(t *testing.T, r *redistest.Server) {
				cookie, id := newSite(t, r.Pool(t, 4), middleware.Options{}, app()).count(t, 1)
				record, lock := keysOf(id)
				if name == "OnCorrupt" {
					r.Do(t, "SET", record, "damaged", "KEEPTTL")
				}
				recovered := false
				caught := func() { recovered = recover() != nil || recovered }
				req := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
				req.AddCookie(cookie)
				func() {
					defer caught()
					newSessions(t, r, o).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if recovers {
							defer caught()
						}
						own, err := session.Start(r.Context())
						must(t, err)
						own.Destroy()
						own.Set("dropped", "which is logged")
						if recovers {
							_ = own.Commit(r.Context())
						}
					})).ServeHTTP(httptest.NewRecorder(), req)
				}()
				synctest.Wait()
				if !recovered || r.Exists(t, lock) {
					t.Errorf("something has panicked: %v; the lock is there: %v", recovered, r.Exists(t, lock))
				}
			})
		}
	}
}

// A marshaler is a value that does something wrong when it is encoded.
type marshaler func()

func (m marshaler) MarshalJSON() ([]byte, error) {
	m()
	return []byte("1"), nil
}

// P7: If a function in the options, or a value in the session, panics or ends the goroutine, its request fails. The
// session is free at once, and unchanged.
func TestWhatTheApplicationDoesWrongCostsItsRequest(t *testing.T) {
	t.Parallel()
	for name, bug := range map[string]func(){"panic": func() { panic(http.ErrAbortHandler) }, "Goexit": runtime.Goexit} {
		for where, path := range map[string]string{
			"Mode": "/add", "Label": "/add", "Logger": "/bad", "OnError": "/bad", "Discard": "/add", "Device": "/enter",
			"Hooks.End": "/logout", "a value": "/set",
		} {
			inFakeTime(t, name+" in "+where, func(t *testing.T, r *redistest.Server) {
				var armed atomic.Value
				wrong := func(option string) {
					if armed.CompareAndSwap(option, "") {
						bug()
					}
				}
				mux := app()
				handle(mux, "/bad", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) { s.Set("n", func() {}) })
				handle(mux, "/enter", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) { s.Login("ann") })
				handle(mux, "/set", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) {
					s.Set("n", marshaler(func() { wrong("a value") }))
				})
				sessions := newSessions(t, r, middleware.Options{
					Mode:    func(*http.Request) middleware.Mode { wrong("Mode"); return middleware.Exclusive },
					Label:   func(*http.Request) string { wrong("Label"); return "a request" },
					Device:  func(*http.Request) string { wrong("Device"); return "a device" },
					Discard: func(int) bool { wrong("Discard"); return false },
					Logger:  slog.New(handling{slog.DiscardHandler, func(context.Context) { wrong("Logger") }}),
					Hooks:   middleware.Hooks{End: func(context.Context, string) { wrong("Hooks.End") }},
					OnError: func(w http.ResponseWriter, _ *http.Request, err error) {
						wrong("OnError")
						http.Error(w, "", middleware.Status(err))
					},
				})
				none := middleware.Options{Mode: func(*http.Request) middleware.Mode { return middleware.None }}
				s := newSite(t, r.Pool(t, 1), none, sessions.Handler(mux))
				v := s.visitor(t)
				armed.Store(where)
				if a := v.post(s.URL + path); a.err == nil || armed.Load() != "" {
					t.Errorf("answered %d %q", a.StatusCode, a.body)
				}
				begun, want := time.Now(), "1"
				if where == "Hooks.End" {
					want = "0" // the logout that the hook is told of was saved
				}
				v.get(s.URL+"/get").want(t, 200, want)
				if took := time.Since(begun); took > 100*time.Millisecond {
					t.Errorf("the next request was served after %v", took)
				}
			})
		}
	}
}
