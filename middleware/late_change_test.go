package middleware_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

const notAllSaved = "Not all of this was saved. Please check before you try again."

// changes are all ways to change a session that has the key n.
var changes = map[string]func(s *session.Session){
	"Set":     func(s *session.Session) { s.Set("n", -9) },
	"Delete":  func(s *session.Session) { s.Delete("n") },
	"Clear":   func(s *session.Session) { s.Clear() },
	"Renew":   func(s *session.Session) { s.Renew() },
	"Destroy": func(s *session.Session) { s.Destroy() },
}

// P2: A handler changes the session after its Commit, and nothing of the response has left yet. The client gets an
// error, whatever the handler has written or goes on to write. The connection is not closed: otherwise a browser
// would repeat the request, and so the handler's work.
func TestALateChangeIsAnError(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("all is well", 10_000)
	for name, answer := range map[string]func(w http.ResponseWriter, late func()){
		"nothing":      func(_ http.ResponseWriter, late func()) { late() },
		"before+after": func(w http.ResponseWriter, late func()) { fmt.Fprint(w, "all"); late(); fmt.Fprint(w, "all is well") },
		"large":        func(w http.ResponseWriter, late func()) { late(); fmt.Fprint(w, large) },
		"copied":       func(w http.ResponseWriter, late func()) { late(); _, _ = io.Copy(w, strings.NewReader(large)) },
		"flushed":      func(w http.ResponseWriter, late func()) { fmt.Fprint(w, "all"); late(); w.(http.Flusher).Flush() },
		"redirect":     func(w http.ResponseWriter, late func()) { w.Header().Set("Location", "/"); w.WriteHeader(303); late() },
		"hijacked": func(w http.ResponseWriter, late func()) {
			late()
			if c, _, err := w.(http.Hijacker).Hijack(); !errors.Is(err, session.ErrClosed) {
				c.Close()
			}
		},
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			runs := 0
			s := siteWith(t, r, middleware.Options{}, "/late", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
				runs++
				s.Set("n", 5)
				w.Header().Set("X-Handler", "yes")
				must(t, s.Commit(req.Context()))
				answer(w, func() { s.Set("flash", "ordered") })
				if err := s.Commit(req.Context()); !errors.Is(err, session.ErrClosed) {
					t.Errorf("Commit after the late change: %v", err)
				}
			})
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
			if runs != 1 {
				t.Errorf("the handler ran %d times", runs)
			}
			if lines := s.log.Lines("session changed after it was saved"); len(lines) != 1 ||
				!strings.Contains(lines[0], "key=flash") || !strings.Contains(lines[0], "change it before Commit") {
				t.Errorf("log: %q", lines)
			}
		})
	}
}

// P2: A change after the commit cannot be saved, and it is not lost in silence. No client takes a response that has
// begun for complete, even if its length was declared and it was written in full. If nothing has left, OnError is
// told which change it was.
func TestAChangeAfterTheAnswerHasBegunCutsItOff(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(w http.ResponseWriter){
		"not begun": func(http.ResponseWriter) {},
		"flush":     func(w http.ResponseWriter) { w.(http.Flusher).Flush() },
		"overflow":  func(w http.ResponseWriter) { fmt.Fprint(w, strings.Repeat("x", 70_000)) },
		"little":    func(w http.ResponseWriter) { fmt.Fprint(w, strings.Repeat("x", 51)) }, // net/http keeps it
		"complete": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "70000")
			for range 70 {
				fmt.Fprint(w, strings.Repeat("x", 1000))
			}
		},
	} {
		for method, change := range changes {
			inFakeTime(t, name+"/"+method, func(t *testing.T, r *redistest.Server) {
				mux := app()
				handle(mux, "/late", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
					must(t, s.Commit(req.Context()))
					begin(w)
					change(s)
					if n, err := fmt.Fprint(w, "all is well"); !errors.Is(err, session.ErrClosed) {
						t.Errorf("wrote %d bytes after the late change: %v", n, err)
					}
				})
				var seen error
				o := middleware.Options{Buffer: 50, OnError: func(w http.ResponseWriter, _ *http.Request, err error) {
					seen = err
					w.WriteHeader(middleware.Status(err))
				}}
				s, v := begun(t, r, o, mux)
				a := v.post(s.URL + "/late")
				if name == "not begun" {
					a.want(t, 500, "")
					if !errors.Is(seen, session.ErrClosed) || !strings.Contains(seen.Error(), method+" after Commit") {
						t.Errorf("OnError got %v", seen)
					}
				} else if a.StatusCode != 200 || a.err == nil || strings.Contains(a.body, "all is well") {
					t.Errorf("the client got %d %q, error %v", a.StatusCode, a.body, a.err) // without a header it would repeat the request
				}
				lines := s.log.Lines("session changed after it was saved")
				if len(lines) != 1 || !strings.Contains(lines[0], "rule=") || !strings.Contains(lines[0], "call="+method) {
					t.Errorf("log: %q", lines)
				}
				v.get(s.URL+"/get").want(t, 200, "1")
			})
		}
	}
}

// P2: In a stream a commit has failed, and the handler could try again after a Reopen. A change between the two is lost
// for good: Reopen refuses, the response is cut off, and the log names the change.
func TestALateChangeAfterACommitThatFailedCutsAStreamOff(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s, v := begunWith(t, r, middleware.Options{}, "/stream", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
			w.(http.Flusher).Flush()
			must(t, s.Reopen(req.Context()))
			loseLock(t, r, req)
			s.Set("n", 5)
			if err := s.Commit(req.Context()); !errors.Is(err, store.ErrLost) {
				t.Errorf("Commit = %v", err)
			}
			s.Set("late", 6)
			if err := s.Reopen(req.Context()); !errors.Is(err, session.ErrClosed) {
				t.Errorf("Reopen after the late change = %v", err)
			}
			_ = s.Commit(req.Context())
		})
		if a := v.post(s.URL + "/stream"); a.err == nil {
			t.Errorf("the client takes %d %q for complete", a.StatusCode, a.body)
		}
		if lines := s.log.Lines("session changed after it was saved", "key=late"); len(lines) != 1 {
			t.Errorf("the log has not one line of the change:\n%s", s.log)
		}
	})
}

// P2: Another goroutine changes the session while its commit is on its way to Redis. Observers are told of a failure,
// and the client gets an error, although the commit succeeds.
func TestAChangeDuringTheCommitIsAnError(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		proxy := redistest.NewProxy(t, r)
		var running atomic.Pointer[session.Session]
		mux := app()
		handle(mux, "/late", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
			s.Set("n", 5)
			running.Store(s)
			w.Header().Set("Content-Length", "11")
			fmt.Fprint(w, "all is well")
			if req.URL.RawQuery == "flush" { // complete, and out at once
				w.(http.Flusher).Flush()
			}
		})
		w := &witness{}
		s := newSite(t, proxy.Pool(t, 4), middleware.Options{Observers: []middleware.Observer{w}}, mux)
		v := s.visitor(t)
		proxy.Inject(func(redistest.Command) redistest.Fault {
			if s := running.Swap(nil); s != nil {
				s.Set("n", 6)
			}
			return redistest.Pass
		})
		for _, path := range []string{"/late", "/late?flush"} {
			v.get(s.URL+"/set/other").want(t, 200, "")
			w.takeAll()
			v.post(s.URL+path).want(t, 500, notAllSaved)
			if e := w.one(t); e.Outcome != "failed" || e.Kind != "late" || e.Committed.IsZero() {
				t.Errorf("%s: observers were told of outcome %q, kind %q, committed %v", path, e.Outcome, e.Kind, e.Committed)
			}
		}
		v.get(s.URL+"/get").want(t, 200, "5")
	})
}

// Observers are told that a request has failed if the client gets the error of a late change, even if the change
// comes while Reopen waits. If a second run replaces the run with the late change, the outcome is the second run's.
func TestALateChangeIsTold(t *testing.T) {
	t.Parallel()
	for path, c := range map[string]struct {
		mode          middleware.Mode
		status        int
		outcome, kind string
	}{
		"/reopen": {middleware.Exclusive, 500, "failed", "late"},
		"/anew":   {middleware.Optimistic, 200, "saved", "late"}, // the kind of the first run's error stays
	} {
		inFakeTime(t, path, func(t *testing.T, r *redistest.Server) {
			w, mux := &witness{}, app()
			runs := 0
			began, taken := make(chan struct{}), make(chan struct{})
			handle(mux, path, func(s *session.Session, _ http.ResponseWriter, req *http.Request) {
				s.Set("a", 1)
				if path == "/reopen" {
					must(t, s.Commit(req.Context()))
				}
				if runs++; runs == 1 {
					began <- struct{}{}
					<-taken
					time.AfterFunc(time.Second, func() { s.Set("late", 1) })
				}
				if path == "/reopen" {
					must(t, s.Reopen(req.Context()))
					s.Set("b", 1)
				}
			})
			s, v := begun(t, r, middleware.Options{
				Observers: []middleware.Observer{w}, Mode: byPath(map[string]middleware.Mode{path: c.mode}),
			}, mux)
			done := v.start(s.URL + path)
			<-began
			free := v.hold(s.URL + "/pause")
			taken <- struct{}{}
			time.Sleep(2 * time.Second)
			free()
			if a := <-done; a.StatusCode != c.status {
				t.Errorf("the response is a %d", a.StatusCode)
			}
			if e := eventOf(t, w, path); e.Outcome != c.outcome || e.Kind != c.kind {
				t.Errorf("observers were told of outcome %q and kind %q, want %q and %q", e.Outcome, e.Kind, c.outcome, c.kind)
			}
		})
	}
}

// P2: If the handler has hijacked the connection, the response is cut off by closing the connection. If the change
// comes during the Hijack, the handler does not get the connection.
func TestALateChangeClosesAHijackedConnection(t *testing.T) {
	t.Parallel()
	for during, want := range map[bool]error{false: nil, true: session.ErrClosed} {
		inFakeTime(t, fmt.Sprint("during Hijack: ", during), func(t *testing.T, r *redistest.Server) {
			s := around(t, r, middleware.Options{}, func(sessions func(http.Handler) http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					taking := &taking{ResponseWriter: w, over: func() {}}
					sessions(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
						late := func() { session.FromContext(req.Context()).Set("n", 5) }
						if during {
							taking.over = late
						}
						conn, _, err := w.(http.Hijacker).Hijack()
						if !errors.Is(err, want) {
							t.Errorf("Hijack = %v, want %v", err, want)
						}
						if err == nil {
							defer conn.Close()
							late()
							_, _ = fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
						}
					})).ServeHTTP(taking, req)
				})
			})
			if a := newVisitor(t).post(s.URL); a.err == nil {
				t.Errorf("the client got %d %q", a.StatusCode, a.body)
			}
		})
	}
}

// A taking is a ResponseWriter that does something when the connection is hijacked, but not yet handed out.
type taking struct {
	http.ResponseWriter
	over func()
}

func (w *taking) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, stream, err := http.NewResponseController(w.ResponseWriter).Hijack()
	w.over()
	return conn, stream, err
}
