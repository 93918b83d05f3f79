package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/gomodule/redigo/redis"
)

// loseLock makes the commit of the running request fail, as after a pause that
// outlasted the lease.
func loseLock(t *testing.T, r *redistest.Server, req *http.Request) {
	_, lock := keysOf(session.FromContext(req.Context()).ID())
	r.Do(t, "DEL", lock)
}

// P2: nothing of the handler's answer gets out when its session was not saved.
func TestAFailedCommitReplacesTheAnswer(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Server) {
		for name, write := range map[string]func(w http.ResponseWriter){
			"body":     func(w http.ResponseWriter) { fmt.Fprint(w, "secret success") },
			"redirect": func(w http.ResponseWriter) { w.Header().Set("Location", "/done"); w.WriteHeader(303) },
			"nothing":  func(http.ResponseWriter) {},
			"flush":    func(w http.ResponseWriter) { fmt.Fprint(w, "secret success"); w.(http.Flusher).Flush() },
			"large":    func(w http.ResponseWriter) { fmt.Fprint(w, strings.Repeat("secret success", 10_000)) },
			"commit is ignored": func(w http.ResponseWriter) {
				fmt.Fprint(w, "secret success")
			},
		} {
			t.Run(name, func(t *testing.T) {
				mux := app()
				mux.HandleFunc("/lose", func(w http.ResponseWriter, req *http.Request) {
					loseLock(t, r, req)
					session.FromContext(req.Context()).Set("n", 100)
					w.Header().Set("X-Handler", "yes")
					if name == "commit is ignored" {
						_ = session.FromContext(req.Context()).Commit(req.Context())
					}
					write(w)
				})
				outer := http.HandlerFunc(mux.ServeHTTP)
				s, v := begun(t, r, middleware.Options{}, outer)

				a := v.get(s.URL + "/lose")
				a.want(t, 503, "*")
				if strings.Contains(a.body, "secret success") || a.Header.Get("X-Handler") != "" || a.Header.Get("Location") != "" {
					t.Errorf("the handler's answer got out: %v %q", a.Header, a.body)
				}
				if a.Header.Get("Retry-After") == "" || a.Header.Get("Cache-Control") != "no-store" {
					t.Errorf("headers of the error: %v", a.Header)
				}
				v.get(s.URL+"/get").want(t, 200, "1")
				if n := len(s.log.Lines("session failed")); n != 1 {
					t.Errorf("%d log lines, want 1:\n%s", n, s.log)
				}
			})
		}
	})
}

// P2: by the time the first byte leaves, whatever the reason, the record is written
// and the lock is free.
func TestTheSessionIsSavedBeforeTheFirstByte(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(w http.ResponseWriter, req *http.Request){
		"write and flush": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "x"); w.(http.Flusher).Flush() },
		"flush alone":     func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() },
		"controller": func(w http.ResponseWriter, _ *http.Request) {
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
		},
		"overflow": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", 100_000)) },
		"read from": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.Copy(w, strings.NewReader(strings.Repeat("x", 100_000)))
		},
		"commit": func(w http.ResponseWriter, req *http.Request) {
			if err := session.FromContext(req.Context()).Commit(req.Context()); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redistest.Each(t, func(t *testing.T, r *redistest.Server) {
				looked, gone := make(chan struct{}), make(chan struct{})
				mux := app()
				mux.HandleFunc("/stream", func(w http.ResponseWriter, req *http.Request) {
					session.FromContext(req.Context()).Set("n", 7)
					write(w, req)
					close(looked)
					<-gone // the stream lasts until its client goes away
				})
				s, v := begun(t, r, middleware.Options{}, mux)
				done := make(chan answer)
				go func() { done <- v.get(s.URL + "/stream") }()
				<-looked
				// The stream is still running, and holds nothing.
				v.get(s.URL+"/add").want(t, 200, "8")
				close(gone)
				(<-done).want(t, 200, "*")
			})
		})
	}
}

// P2: the answer has a new session's cookie however it begins.
func TestTheCookieComesWithTheFirstByte(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	for name, write := range map[string]http.HandlerFunc{
		"nothing":     func(http.ResponseWriter, *http.Request) {},
		"body":        func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") },
		"status":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) },
		"redirect":    func(w http.ResponseWriter, req *http.Request) { http.Redirect(w, req, "/", http.StatusSeeOther) },
		"flush":       func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() },
		"early hints": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); fmt.Fprint(w, "hello") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, r.Pool(t, 4), middleware.Options{}, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				session.FromContext(req.Context()).Set("a", 1)
				w.Header().Set("Cache-Control", "public, max-age=600")
				write(w, req)
			}))
			a := newVisitor(t).get(s.URL)
			if !a.sets() || a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("Vary") != "Cookie" {
				t.Errorf("%d %v", a.StatusCode, a.Header)
			}
		})
	}
}

// P2: an informational answer is not the answer yet, so it needs no commit.
func TestInformationalAnswersPassWithoutACommit(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		seen := make(chan struct{})
		mux := app()
		mux.HandleFunc("/hints", func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Link", "</style.css>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
			<-seen // the client has it already
			session.FromContext(req.Context()).Set("n", 5)
			fmt.Fprint(w, "done")
		})
		s, v := begun(t, r, middleware.Options{}, mux)
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
				if code != 103 || h.Get("Link") == "" || h.Get("Set-Cookie") != "" {
					t.Errorf("%d %v", code, h)
				}
				close(seen)
				return nil
			},
		})
		v.send(ctx, http.MethodGet, s.URL+"/hints", nil).want(t, 200, "done")
		v.get(s.URL+"/get").want(t, 200, "5")
	})
}

// P2: a client that closes the connection does not undo its request.
func TestADisconnectDoesNotCancelTheCommit(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		working, saved := make(chan struct{}), make(chan struct{})
		mux := app()
		mux.HandleFunc("/slow", func(w http.ResponseWriter, req *http.Request) {
			close(working)
			<-req.Context().Done()
			session.FromContext(req.Context()).Set("n", 50)
		})
		s, v := begun(t, r, middleware.Options{}, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			mux.ServeHTTP(w, req)
			if req.URL.Path == "/slow" {
				close(saved)
			}
		}))
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-working; cancel() }()
		if a := v.send(ctx, http.MethodGet, s.URL+"/slow", nil); !errors.Is(a.err, context.Canceled) {
			t.Fatalf("%v", a.err)
		}
		<-saved // the handler has returned; the commit follows, under the lock
		v.get(s.URL+"/get").want(t, 200, "50")
	})
}

// A value that cannot be stored fails the whole request, not just the value.
func TestAValueThatCannotBeEncodedFailsTheRequest(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		handle(mux, "/chan", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
			s.Set("n", 99)
			s.Set("c", make(chan int))
			fmt.Fprint(w, "stored")
		})
		s, v := begun(t, r, middleware.Options{}, mux)
		v.get(s.URL+"/chan").want(t, 500, "*")
		v.get(s.URL+"/get").want(t, 200, "1")
		if lines := s.log.Lines("session failed"); len(lines) != 1 || !strings.Contains(lines[0], `Set(\"c\")`) {
			t.Errorf("the log does not name the key: %q", lines)
		}
		if keys, err := redis.Strings(r.Do(t, "KEYS", "*.lock"), nil); err != nil || len(keys) > 0 {
			t.Errorf("a lock is left behind: %v %v", keys, err)
		}
	})
}
