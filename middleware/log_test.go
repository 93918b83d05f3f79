package middleware_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/logtest"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// fails is a handler whose session cannot be saved.
func fails(_ http.ResponseWriter, r *http.Request) {
	session.FromContext(r.Context()).Set("f", func() {})
}

// writes is a handler that changes its session, which fails if the session may only be read.
func writes(_ http.ResponseWriter, r *http.Request) { add(session.FromContext(r.Context())) }

// A thousand requests that fail alike are not a thousand lines: ten of a kind are written in a
// second, and the first line after it says how many were left out.
func TestAFloodOfErrorsIsNoFloodOfLines(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		log := &logtest.Buffer{}
		s := newSessions(t, r, middleware.Options{Logger: log.Logger()})
		for range 1000 {
			serveOnce(t, s.Handler(http.HandlerFunc(fails)))
		}
		serveOnce(t, s.ReadOnly(http.HandlerFunc(writes)))
		if n, m := len(log.Lines("kind=other")), len(log.Lines("kind=read_only")); n != 10 || m != 1 {
			t.Errorf("%d lines of the flood, want 10; %d of another kind, want 1", n, m)
		}
		redistest.Elapse(time.Second)
		serveOnce(t, s.Handler(http.HandlerFunc(fails)))
		if len(log.Lines("left_out=990")) != 1 {
			t.Errorf("the next line does not say that 990 lines were left out:\n%s", log)
		}
	})
}

// Text that a client chooses does not make a log line long.
func TestALineIsShort(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		log := &logtest.Buffer{}
		s := newSessions(t, r, middleware.Options{Logger: log.Logger()})
		long := strings.Repeat("A", 100_000)
		for _, h := range []http.Handler{s.Handler(http.HandlerFunc(fails)), s.ReadOnly(http.HandlerFunc(writes))} {
			before := len(log.String())
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), long, "/"+long, nil))
			if n := len(log.String()) - before; n == 0 || n > 1000 {
				t.Errorf("a request with a method and a path of 100 kB makes %d bytes of log", n)
			}
		}
	})
}

// Text that a handler takes from a request, such as a key, a label, a user or a device, does not make a log line
// long. It does not make an error long either.
func TestWhatHandlersMakeOfARequestIsClipped(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ü", 50_000)
	update := func(s *middleware.Sessions, r *http.Request, f func(*session.Session)) {
		own := s.FromContext(r.Context())
		own.Set("n", 1)
		must(t, own.Commit(r.Context()))
		must(t, s.Update(r.Context(), own.ID(), func(its *session.Session) error { f(its); return nil }))
	}
	for name, handler := range map[string]func(s *middleware.Sessions, own *session.Session, r *http.Request){
		"no JSON":   func(_ *middleware.Sessions, own *session.Session, _ *http.Request) { own.Set(long, func() {}) },
		"too large": func(_ *middleware.Sessions, own *session.Session, _ *http.Request) { own.Set(long, 1) },
		"read-only": func(_ *middleware.Sessions, own *session.Session, _ *http.Request) { own.Set(long, 1) },
		"dropped":   func(_ *middleware.Sessions, own *session.Session, _ *http.Request) { own.Destroy(); own.Set(long, 1) },
		"late": func(_ *middleware.Sessions, own *session.Session, r *http.Request) {
			must(t, own.Commit(r.Context()))
			own.Set(long, 1)
		},
		"user": func(_ *middleware.Sessions, own *session.Session, _ *http.Request) { own.Login(long) },
		"dropped in Update": func(s *middleware.Sessions, _ *session.Session, r *http.Request) {
			update(s, r, func(its *session.Session) { its.Destroy(); its.Set(long, 1) })
		},
		"late in Update": func(s *middleware.Sessions, _ *session.Session, r *http.Request) {
			var kept *session.Session
			update(s, r, func(its *session.Session) { kept = its })
			kept.Set(long, 1)
		},
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			log := &logtest.Buffer{}
			var answered error
			s := newSessions(t, r, middleware.Options{Logger: log.Logger(), MaxBytes: 4096,
				Label:  func(r *http.Request) string { return r.URL.Path },
				Device: func(r *http.Request) string { return r.UserAgent() },
				OnError: func(w http.ResponseWriter, _ *http.Request, err error) {
					answered = err
					w.WriteHeader(middleware.Status(err))
				},
				Mode: func(*http.Request) middleware.Mode {
					if name == "read-only" {
						return middleware.ReadOnly
					}
					return middleware.Exclusive
				}})
			req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/"+long, nil)
			req.Header.Set("User-Agent", long)
			s.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				own := session.FromContext(r.Context())
				if err := own.Decode(long, new(int)); len(err.Error()) > 1000 {
					t.Errorf("an error of Decode has %d bytes", len(err.Error()))
				}
				handler(s, own, r)
			})).ServeHTTP(httptest.NewRecorder(), req)
			if n := len(log.String()); n == 0 || n > 1000 || len(fmt.Sprint(answered)) > 1000 {
				t.Errorf("%d bytes of log, and %.1000v", n, answered)
			}
		})
	}
}

// One log line tells which route failed, how, and in what mode.
func TestTheLogSaysWhichRouteFailedAndHow(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		log := &logtest.Buffer{}
		s := newSessions(t, r, middleware.Options{Logger: log.Logger()})
		mux := http.NewServeMux()
		mux.Handle("GET /{$}", s.ReadOnly(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			session.FromContext(r.Context()).Set("token", "t0ps3cret")
		})))
		serveOnce(t, s.Handler(mux))
		line := log.String()
		for _, want := range []string{"kind=read_only", "route=/{$}", "mode=ReadOnly", "method=GET", "status=500", `Set(\"token\")`, "GET /{$}"} {
			if !strings.Contains(line, want) {
				t.Errorf("no %s in\n%s", want, line)
			}
		}
		if strings.Contains(line, "t0ps3cret") {
			t.Errorf("the value is in the log:\n%s", line)
		}
		mux.HandleFunc("/", fails)
		s.Handler(http.HandlerFunc(mux.ServeHTTP)).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/found/late", nil))
		if len(log.Lines("route=/ ")) != 1 {
			t.Errorf("the log has no line with the route that was found late:\n%s", log)
		}
	})
}

// A Set or a Login after Destroy is dropped, and a warning is logged.
func TestWhatIsSetAfterDestroyIsReported(t *testing.T) {
	t.Parallel()
	for line, late := range map[string]func(s *session.Session){
		"key=flash": func(s *session.Session) { s.Set("flash", "goodbye") },
		"key=" + strings.Repeat("x", 125) + "…": func(s *session.Session) { s.Set(strings.Repeat("x", 1<<20), "goodbye") },
		"a login after Destroy is dropped":      func(s *session.Session) { s.Login("ann") },
	} {
		inFakeTime(t, line, func(t *testing.T, r *redistest.Server) {
			s, v := begunWith(t, r, middleware.Options{}, "/goodbye", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) {
				s.Destroy()
				late(s)
			})
			v.get(s.URL+"/goodbye").want(t, 200, "")
			if len(s.log.Lines(line)) != 1 {
				t.Errorf("log:\n%.1000s", s.log)
			}
			v.get(s.URL+"/get").want(t, 200, "0")
		})
	}
}

// The log line of a 503 names the request that holds the session, and its process. Any part of a path, and of the
// query, may be a secret, as in the link of a mail. So neither Redis nor another visitor's log line has them. An
// application may give its requests other names.
func TestTheLogNamesTheHolder(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		pattern, path string
		routed        bool // before the session is opened
		label         func(*http.Request) string
		want          string
	}{
		"a route":                   {"/reset/{token}", "/reset/open-sesame?code=open-sesame", true, nil, "POST /reset/{token} for "},
		"a route with its method":   {"POST /{token}", "/open-sesame", true, nil, "POST /{token} for "},
		"a secret of one part":      {"/{token}", "/open-sesame?code=open-sesame", false, nil, "POST for "},
		"a secret further back":     {"/reset/{token}", "/reset/open-sesame", false, nil, "POST for "},
		"a secret in front, routed": {"/{token}/confirm", "/open-sesame/confirm", true, nil, "POST /{token}/confirm for "},
		"a label":                   {"/", "/", true, func(r *http.Request) string { return "tenant of " + r.Method }, "tenant of POST for "},
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			busy, free := make(chan struct{}), make(chan struct{})
			slow := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				close(busy)
				<-free
			})
			holder := around(t, r, middleware.Options{Label: tt.label}, func(sessions func(http.Handler) http.Handler) http.Handler {
				mux := http.NewServeMux()
				if tt.routed {
					mux.Handle(tt.pattern, sessions(slow))
					return mux
				}
				mux.Handle(tt.pattern, slow)
				return sessions(http.HandlerFunc(mux.ServeHTTP)) // a router that cannot be asked
			})
			other, v := begun(t, r, middleware.Options{}, app())
			done := make(chan answer, 1)
			go func() { done <- with(t, v.cookies(other)...).post(holder.URL + tt.path) }()
			<-busy
			for _, key := range r.Keys(t) {
				if value, _ := r.Get(t, key); strings.Contains(value, "sesame") {
					t.Errorf("%s is %s", key, value)
				}
			}
			v.get(other.URL+"/add").want(t, 503, "*")
			close(free)
			(<-done).want(t, 200, "")
			if len(other.log.Lines(" "+tt.want)) != 1 || len(other.log.Lines("sesame")) != 0 {
				t.Errorf("log:\n%s", other.log)
			}
		})
	}
}

// An application's log handler may ask for the session of the context that it is given.
func TestALogHandlerMayAskForTheSession(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		site := newSite(t, r.Pool(t, 4), middleware.Options{}, app())
		asked := 0
		logger := slog.New(handling{slog.DiscardHandler, func(ctx context.Context) {
			asked++
			_, _ = session.Start(ctx)
		}})
		s := newSessions(t, r, middleware.Options{Logger: logger, Mode: func(*http.Request) middleware.Mode { return middleware.Lazy }})
		req := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		for n := range 2 {
			cookie, _ := site.count(t, n+1)
			req.AddCookie(cookie)
		}
		s.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, err := session.Start(r.Context()) // Start hangs here if it hangs in the log handler
			must(t, err)
		})).ServeHTTP(httptest.NewRecorder(), req)
		if asked != 1 {
			t.Errorf("asked %d times, want once: for the warning of two cookies", asked)
		}
	})
}

// handling is a log handler that does something with each line.
type handling struct {
	slog.Handler
	do func(context.Context)
}

func (h handling) Enabled(context.Context, slog.Level) bool        { return true }
func (h handling) Handle(ctx context.Context, _ slog.Record) error { h.do(ctx); return nil }
