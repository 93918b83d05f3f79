package middleware_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/logtest"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// A thousand requests that fail alike are not a thousand lines: ten of a kind are written in a
// second, and the first line after it says how many were left out.
func TestAFloodOfErrorsIsNoFloodOfLines(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	synctest.Test(t, func(t *testing.T) {
		log := &logtest.Buffer{}
		s := newSessions(t, r, middleware.Options{Logger: log.Logger()})
		fails := s.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			session.FromContext(r.Context()).Set("f", func() {})
		}))
		another := s.ReadOnly(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			session.FromContext(r.Context()).Set("a", 1)
		}))
		for range 1000 {
			serveOnce(t, fails)
		}
		serveOnce(t, another)
		if n, m := len(log.Lines("kind=other")), len(log.Lines("kind=read_only")); n != 10 || m != 1 {
			t.Errorf("%d lines of the flood, want 10; %d of another kind, want 1", n, m)
		}
		time.Sleep(time.Second)
		serveOnce(t, fails)
		if len(log.Lines("left_out=990")) != 1 {
			t.Errorf("the next line does not say that 990 were left out:\n%s", log)
		}
	})
}

// What a client makes up does not make a line long.
func TestALineIsShort(t *testing.T) {
	t.Parallel()
	log := &logtest.Buffer{}
	s := newSessions(t, redistest.Embedded(t), middleware.Options{Logger: log.Logger()})
	long := strings.Repeat("A", 100_000)
	r := httptest.NewRequestWithContext(t.Context(), long, "/"+long, nil)
	for name, h := range map[string]http.Handler{
		"a failed Set": s.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			session.FromContext(r.Context()).Set("f", func() {})
		})),
		"a Set where the mode is ReadOnly": s.ReadOnly(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			session.FromContext(r.Context()).Set("n", 1)
		})),
	} {
		before := len(log.String())
		h.ServeHTTP(httptest.NewRecorder(), r)
		if n := len(log.String()) - before; n == 0 || n > 1000 {
			t.Errorf("%s: a request with a method and a path of 100 kB makes %d bytes of log", name, n)
		}
	}
}

// Who is paged at night reads in one line which route failed, how, and in what mode.
func TestTheLogSaysWhichRouteFailedAndHow(t *testing.T) {
	t.Parallel()
	log := &logtest.Buffer{}
	s := newSessions(t, redistest.Embedded(t), middleware.Options{Logger: log.Logger()})
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
}

// A farewell that is set after Destroy is dropped. It is not dropped without a word.
func TestWhatIsSetAfterDestroyIsReported(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	site := newSite(t, r.Pool(t, 2), middleware.Options{}, withGoodbye())
	v := newVisitor(t)
	v.get(site.URL+"/add").want(t, 200, "1")
	v.get(site.URL+"/goodbye").want(t, 200, "")
	if len(site.log.Lines("key=flash")) != 1 {
		t.Errorf("log:\n%s", site.log)
	}
	v.get(site.URL+"/get").want(t, 200, "0")

	v.get(site.URL+"/add").want(t, 200, "1")
	v.get(site.URL+"/begin-anew").want(t, 200, "")
	if len(site.log.Lines("a login after Destroy is dropped")) != 1 {
		t.Errorf("log:\n%s", site.log)
	}
}

func withGoodbye() *http.ServeMux {
	mux := app()
	mux.HandleFunc("/begin-anew", func(_ http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		s.Destroy()
		s.Login("ann")
	})
	mux.HandleFunc("/goodbye", func(_ http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		s.Destroy()
		s.Set("flash", "goodbye")
	})
	return mux
}

// An application may call its requests by other names than their routes'.
func TestTheLabelIsTheApplications(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	label := func(r *http.Request) string { return "tenant " + r.Header.Get("Tenant") }
	busy, free := make(chan struct{}), make(chan struct{})
	mux := app()
	mux.HandleFunc("/slow", func(http.ResponseWriter, *http.Request) {
		close(busy)
		<-free
	})
	site := newSite(t, r.Pool(t, 4), middleware.Options{Label: label, LockWait: 50 * time.Millisecond}, mux)
	v := newVisitor(t)
	v.get(site.URL+"/add").want(t, 200, "1")
	done := make(chan answer, 1)
	go func() {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", site.URL+"/slow", nil)
		req.Header.Set("Tenant", "acme")
		done <- v.do(req)
	}()
	<-busy
	v.get(site.URL+"/add").want(t, 503, "*")
	close(free)
	(<-done).want(t, 200, "")
	if len(site.log.Lines(" tenant acme for ")) != 1 {
		t.Errorf("the holder is not called by its label:\n%s", site.log)
	}
}

// Where another router than Sessions.Handler knows finds the route, a failed commit names it, and
// a goroutine that is late may at that moment be reported, too. The race detector watches.
func TestTheLogNamesARouteThatIsFoundLate(t *testing.T) {
	t.Parallel()
	log := &logtest.Buffer{}
	s := newSessions(t, redistest.Embedded(t), middleware.Options{Logger: log.Logger()})
	var late sync.WaitGroup
	mux := http.NewServeMux()
	mux.HandleFunc("/unsaved", func(_ http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Set("f", func() {})
	})
	mux.HandleFunc("/late", func(_ http.ResponseWriter, r *http.Request) {
		own := session.FromContext(r.Context())
		if err := own.Commit(r.Context()); err != nil {
			t.Error(err)
		}
		late.Go(func() {
			for range 100 {
				own.Set("a", 1)
			}
		})
	})
	for _, path := range []string{"/unsaved", "/late"} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
		s.Handler(http.HandlerFunc(mux.ServeHTTP)).ServeHTTP(httptest.NewRecorder(), r)
	}
	late.Wait()
	if len(log.Lines("route=/unsaved")) != 1 {
		t.Errorf("log:\n%s", log)
	}
}

// An application's log handler may ask for the session of the context that it is given.
func TestALogHandlerMayAskForTheSession(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	site := newSite(t, r.Pool(t, 4), middleware.Options{}, app())
	one, _ := site.count(t, 1)
	two, _ := site.count(t, 2)
	asked := 0
	logger := slog.New(handling{slog.DiscardHandler, func(ctx context.Context) {
		asked++
		_, _ = session.Start(ctx)
	}})
	s := newSessions(t, r, middleware.Options{Logger: logger, Mode: func(*http.Request) middleware.Mode { return middleware.Lazy }})
	req := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
	req.AddCookie(one)
	req.AddCookie(two)
	s.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := session.Start(r.Context()); err != nil { // which hangs if the handler does
			t.Error(err)
		}
	})).ServeHTTP(httptest.NewRecorder(), req)
	if asked != 1 {
		t.Errorf("asked %d times, want once: for the warning of two cookies", asked)
	}
}

// handling is a log handler that does something with each line.
type handling struct {
	slog.Handler
	do func(context.Context)
}

func (h handling) Enabled(context.Context, slog.Level) bool        { return true }
func (h handling) Handle(ctx context.Context, _ slog.Record) error { h.do(ctx); return nil }
