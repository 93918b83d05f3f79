package middleware_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

const notAllSaved = "Not all of this was saved. Please check before you try again."

// P2: a handler changes the session after its Commit, and nothing of the answer has left yet. The
// client gets an error, whatever the handler answers or has answered. The connection stays whole:
// a browser would repeat the request, and so the handler's work.
func TestALateChangeIsAnError(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	large := strings.Repeat("all is well", 10_000)
	for name, answer := range map[string]func(w http.ResponseWriter, late func()){
		"nothing":      func(_ http.ResponseWriter, late func()) { late() },
		"before":       func(w http.ResponseWriter, late func()) { fmt.Fprint(w, "all is well"); late() },
		"after":        func(w http.ResponseWriter, late func()) { late(); fmt.Fprint(w, "all is well") },
		"before+after": func(w http.ResponseWriter, late func()) { fmt.Fprint(w, "all"); late(); fmt.Fprint(w, "all is well") },
		"large":        func(w http.ResponseWriter, late func()) { late(); fmt.Fprint(w, large) },
		"copied":       func(w http.ResponseWriter, late func()) { late(); _, _ = io.Copy(w, strings.NewReader(large)) },
		"flushed": func(w http.ResponseWriter, late func()) {
			fmt.Fprint(w, "all is well")
			late()
			w.(http.Flusher).Flush()
		},
		"redirect": func(w http.ResponseWriter, late func()) { w.Header().Set("Location", "/"); w.WriteHeader(303); late() },
		"hijacked": func(w http.ResponseWriter, late func()) {
			late()
			if c, _, err := w.(http.Hijacker).Hijack(); !errors.Is(err, session.ErrClosed) {
				c.Close()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var runs atomic.Int32
			mux := app()
			mux.HandleFunc("/late", func(w http.ResponseWriter, req *http.Request) {
				runs.Add(1)
				s := session.FromContext(req.Context())
				s.Set("n", 5)
				w.Header().Set("X-Handler", "yes")
				if err := s.Commit(req.Context()); err != nil {
					t.Error(err)
				}
				answer(w, func() { s.Set("flash", "ordered") })
			})
			s := newSite(t, r.Pool(t, 4), middleware.Options{}, mux)
			c := dial(t, s.Server)
			c.send("POST /late HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
			a := c.read()
			a.want(t, 500, notAllSaved)
			if a.Header.Get("X-Handler") != "" || a.Header.Get("Location") != "" || a.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("header: %v", a.Header)
			}
			if len(a.Cookies()) != 1 {
				t.Fatalf("what was saved is lost: %v", a.Header)
			}
			cookie := a.Cookies()[0]
			c.send("GET /get HTTP/1.1\r\nHost: a\r\nCookie: " + cookie.Name + "=" + cookie.Value + "\r\n\r\n")
			c.read().want(t, 200, "5")
			if n := runs.Load(); n != 1 {
				t.Errorf("the handler ran %d times", n)
			}
			if lines := s.log.Lines("session changed after it was saved"); len(lines) != 1 ||
				!strings.Contains(lines[0], "key=flash") || !strings.Contains(lines[0], "change it before Commit") {
				t.Errorf("log: %q", lines)
			}
		})
	}
}

// P2: every kind of change counts, and OnError sees which it was.
func TestOnErrorSeesTheLateChange(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	for method, change := range changes {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			var seen []error
			mux := app()
			mux.HandleFunc("/late", func(_ http.ResponseWriter, req *http.Request) {
				s := session.FromContext(req.Context())
				_ = s.Commit(req.Context())
				change(s)
				s.Set("another", true)
			})
			s := newSite(t, r.Pool(t, 4), middleware.Options{OnError: func(w http.ResponseWriter, _ *http.Request, err error) {
				seen = append(seen, err)
				w.WriteHeader(middleware.Status(err))
			}}, mux)
			v := newVisitor(t)
			v.get(s.URL+"/add").want(t, 200, "1")
			v.get(s.URL+"/late").want(t, 500, "")
			if len(seen) != 1 || !errors.Is(seen[0], session.ErrClosed) || !strings.Contains(seen[0].Error(), method+" after Commit") {
				t.Errorf("OnError got %v", seen)
			}
			v.get(s.URL+"/get").want(t, 200, "1")
		})
	}
}

// P2: where the commit has failed, that is the error, and not what the handler did afterwards.
func TestALateChangeDoesNotHideAFailedCommit(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	mux := app()
	mux.HandleFunc("/lose", func(w http.ResponseWriter, req *http.Request) {
		loseLock(t, r, req)
		s := session.FromContext(req.Context())
		s.Renew()
		_ = s.Commit(req.Context())
		s.Set("n", 9)
		fmt.Fprint(w, "all is well")
	})
	s := newSite(t, r.Pool(t, 4), middleware.Options{}, mux)
	v := newVisitor(t)
	v.get(s.URL+"/add").want(t, 200, "1")
	a := v.get(s.URL + "/lose")
	a.want(t, 503, "*")
	if a.sets() {
		t.Errorf("the cookie of a session that was not saved: %v", a.Header)
	}
	if lines := s.log.Lines("kind="); len(lines) != 1 || !strings.Contains(lines[0], "kind=lost") {
		t.Errorf("the log does not say just that the lock was lost:\n%s", s.log)
	}
	v.get(s.URL+"/get").want(t, 200, "1")
}

// A goroutine changes the session while the connection changes hands: there is no answer to put
// an error into any more, so the connection is closed.
func TestAChangeDuringAHijackClosesTheConnection(t *testing.T) {
	t.Parallel()
	s := newSessions(t, redistest.Embedded(t), middleware.Options{Logger: slog.New(slog.DiscardHandler)})
	hijacked := make(chan error, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		during := &duringHijack{ResponseWriter: w}
		s.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			own := session.FromContext(r.Context())
			during.do = func() { own.Set("late", 1) }
			conn, _, err := w.(http.Hijacker).Hijack()
			hijacked <- err
			if err == nil {
				fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				conn.Close()
			}
		})).ServeHTTP(during, r)
	}))
	defer srv.Close()
	a := newVisitor(t).post(srv.URL)
	if err := <-hijacked; !errors.Is(err, session.ErrClosed) {
		t.Errorf("Hijack returns %v", err)
	}
	if a.err == nil {
		t.Errorf("the client was answered: %d %q", a.StatusCode, a.body)
	}
}

// duringHijack does something when the connection is taken over, but not handed out yet.
type duringHijack struct {
	http.ResponseWriter
	do func()
}

func (w *duringHijack) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, stream, err := http.NewResponseController(w.ResponseWriter).Hijack()
	w.do()
	return conn, stream, err
}
