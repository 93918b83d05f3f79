package middleware_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// P2: what is set after the commit cannot be saved. It is not lost in silence
// either: no client takes an answer that has begun for complete.
func TestAChangeAfterTheAnswerHasBegunCutsItOff(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	for name, begin := range map[string]func(w http.ResponseWriter){
		"flush":    func(w http.ResponseWriter) { w.(http.Flusher).Flush() },
		"overflow": func(w http.ResponseWriter) { fmt.Fprint(w, strings.Repeat("x", 70_000)) },
		"little":   func(w http.ResponseWriter) { fmt.Fprint(w, strings.Repeat("x", 51)) }, // net/http keeps it
	} {
		for method, change := range changes {
			t.Run(name+"/"+method, func(t *testing.T) {
				t.Parallel()
				mux := app()
				mux.HandleFunc("/late", func(w http.ResponseWriter, req *http.Request) {
					begin(w)
					change(session.FromContext(req.Context()))
					if n, err := fmt.Fprint(w, "all is well"); !errors.Is(err, session.ErrClosed) {
						t.Errorf("wrote %d bytes after the broken rule: %v", n, err)
					}
				})
				o := middleware.Options{}
				if name == "little" {
					o.Buffer = 50
				}
				s := newSite(t, r.Pool(t, 4), o, mux)
				v := newVisitor(t)
				v.get(s.URL+"/add").want(t, 200, "1")
				// Without a header, browsers would send the request again.
				a := v.post(s.URL + "/late")
				if a.StatusCode != 200 || a.err == nil || strings.Contains(a.body, "all is well") {
					t.Errorf("the client got %d %q, error %v", a.StatusCode, a.body, a.err)
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

// changes are all ways to change a session that has n.
var changes = map[string]func(s *session.Session){
	"Set":     func(s *session.Session) { s.Set("n", 9) },
	"Delete":  func(s *session.Session) { s.Delete("n") },
	"Clear":   func(s *session.Session) { s.Clear() },
	"Renew":   func(s *session.Session) { s.Renew() },
	"Destroy": func(s *session.Session) { s.Destroy() },
}

// P2: not even an answer whose length was declared and which was written in full
// looks complete to a client if the handler then breaks the rule.
func TestALateChangeCutsOffAnAnswerOfKnownLength(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	content := bytes.Repeat([]byte("x"), 100_000)
	for name, write := range map[string]http.HandlerFunc{
		"file": func(w http.ResponseWriter, req *http.Request) {
			http.ServeContent(w, req, "a.bin", time.Unix(1e9, 0), bytes.NewReader(content))
		},
		"one write": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100000")
			_, _ = w.Write(content)
		},
		"many writes": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100000")
			for range 100 {
				_, _ = w.Write(content[:1000])
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mux := app()
			mux.HandleFunc("/late", func(w http.ResponseWriter, req *http.Request) {
				write(w, req)
				session.FromContext(req.Context()).Set("downloads", 1)
			})
			mux.HandleFunc("/fine", write)
			s := newSite(t, r.Pool(t, 4), middleware.Options{}, mux)
			v := newVisitor(t)
			v.get(s.URL+"/add").want(t, 200, "1")
			if a := v.post(s.URL + "/late"); a.err == nil {
				t.Errorf("the client believes %d bytes", len(a.body))
			}
			v.get(s.URL+"/fine").want(t, 200, string(content))
		})
	}
}

// P2: a change by another goroutine, while the commit is on its way to Redis.
func TestAChangeDuringTheCommitIsAnError(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		proxy := redistest.NewProxy(t, r)
		var running atomic.Pointer[session.Session]
		mux := app()
		mux.HandleFunc("/late", func(w http.ResponseWriter, req *http.Request) {
			s := session.FromContext(req.Context())
			s.Set("n", 5)
			running.Store(s)
			if req.URL.RawQuery == "flush" { // complete, and out at once
				w.Header().Set("Content-Length", "11")
				fmt.Fprint(w, "all is well")
				w.(http.Flusher).Flush()
				return
			}
			fmt.Fprint(w, "all is well")
		})
		s := newSite(t, proxy.Pool(t, 4), middleware.Options{}, mux)
		v := newVisitor(t)
		v.get(s.URL+"/add").want(t, 200, "1")
		proxy.Inject(func(redistest.Command) redistest.Fault {
			if s := running.Swap(nil); s != nil {
				s.Set("n", 6)
			}
			return redistest.Pass
		})
		for _, path := range []string{"/late", "/late?flush"} {
			v.get(s.URL+"/set/other").want(t, 200, "")
			v.post(s.URL+path).want(t, 500, "Not all of this was saved. Please check before you try again.")
		}
		v.get(s.URL+"/get").want(t, 200, "5")
	})
}

// P2: once the handler has the connection, cutting the answer off means closing it.
func TestALateChangeClosesAHijackedConnection(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	mux := app()
	mux.HandleFunc("/hijack", func(w http.ResponseWriter, req *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		session.FromContext(req.Context()).Set("n", 5)
		_, _ = fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	})
	s := newSite(t, r.Pool(t, 4), middleware.Options{}, mux)
	v := newVisitor(t)
	v.get(s.URL+"/add").want(t, 200, "1")
	if a := v.post(s.URL + "/hijack"); a.err == nil {
		t.Errorf("the client got %d %q", a.StatusCode, a.body)
	}
}

// A logout works even if something else in the same request did not.
func TestDestroyIsNotStoppedByAFailedSet(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	mux := app()
	mux.HandleFunc("/clumsy-logout", func(_ http.ResponseWriter, req *http.Request) {
		s := session.FromContext(req.Context())
		s.Set("bad", make(chan int))
		s.Destroy()
	})
	s := newSite(t, r.Pool(t, 4), middleware.Options{}, mux)
	v := newVisitor(t)
	v.get(s.URL+"/add").want(t, 200, "1")
	old := with(t, v.cookies(s)...)
	v.get(s.URL+"/clumsy-logout").want(t, 200, "")
	old.get(s.URL+"/get").want(t, 200, "0")
}
