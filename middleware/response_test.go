package middleware_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/coder/websocket"
)

// A client that sends its body slowly does not hold its session meanwhile.
func TestASlowBodyHoldsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s, v := begunWith(t, r, middleware.Options{LockWait: 5 * time.Second}, "/form", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
			s.Set("n", 40)
			fmt.Fprint(w, req.PostFormValue("a"))
		})
		body, slow := io.Pipe()
		req, err := http.NewRequest(http.MethodPost, s.URL+"/form", body)
		must(t, err)
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

// A second WriteHeader is a mistake that net/http reports. It does not see one that comes before
// the commit, so the sessions report that, once, with the place.
func TestASuperfluousWriteHeaderIsLogged(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s := newSite(t, r.Pool(t, 4), middleware.Options{}, http.HandlerFunc(answersTwice))
		newVisitor(t).get(s.URL).want(t, 403, "no")
		lines := s.log.Lines("superfluous")
		if len(lines) != 1 || !strings.Contains(lines[0], "answersTwice:") || !strings.Contains(lines[0], "status=403 ignored=500") {
			t.Errorf("log: %q", lines)
		}
	})
}

func answersTwice(w http.ResponseWriter, req *http.Request) {
	session.FromContext(req.Context()).Set("a", 1)
	w.WriteHeader(http.StatusForbidden)
	fmt.Fprint(w, "no")
	w.WriteHeader(http.StatusInternalServerError)
	w.WriteHeader(http.StatusNotFound)
}

// P2: nothing of the handler's response is sent if its session was not saved.
func TestAFailedCommitReplacesTheAnswer(t *testing.T) {
	onEach(t, func(t *testing.T, r *redistest.Server) {
		writes := map[string]func(w http.ResponseWriter, req *http.Request){
			"/body":     func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "secret success") },
			"/redirect": func(w http.ResponseWriter, req *http.Request) { http.Redirect(w, req, "/done", http.StatusSeeOther) },
			"/nothing":  func(http.ResponseWriter, *http.Request) {},
			"/flush": func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprint(w, "secret success")
				w.(http.Flusher).Flush()
			},
			"/large": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("secret success", 10_000)) },
			"/ignored": func(w http.ResponseWriter, req *http.Request) {
				_ = session.FromContext(req.Context()).Commit(req.Context())
				fmt.Fprint(w, "secret success")
			},
			"/late": func(w http.ResponseWriter, req *http.Request) { // a late change does not hide the commit's error
				s := session.FromContext(req.Context())
				s.Renew()
				_ = s.Commit(req.Context())
				s.Set("n", 9)
				fmt.Fprint(w, "secret success")
			},
			"/hijack": func(w http.ResponseWriter, _ *http.Request) {
				if _, _, err := http.NewResponseController(w).Hijack(); err == nil {
					t.Error("the handler has got the connection")
				}
			},
		}
		s, v := begunWith(t, r, middleware.Options{}, "/lose/{how}", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
			loseLock(t, r, req)
			s.Set("n", 100)
			w.Header().Set("X-Handler", "yes")
			writes["/"+req.PathValue("how")](w, req)
		})
		for how := range writes {
			a := v.get(s.URL + "/lose" + how)
			a.want(t, 503, "*")
			if strings.Contains(a.body, "secret success") || a.Header.Get("X-Handler") != "" || a.Header.Get("Location") != "" || a.sets() {
				t.Errorf("%s: a part of the handler's response was sent: %v %q", how, a.Header, a.body)
			}
			if a.Header.Get("Retry-After") == "" || a.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: headers of the error: %v", how, a.Header)
			}
			v.get(s.URL+"/get").want(t, 200, "1")
		}
		if n, all := len(s.log.Lines("kind=lost")), len(s.log.Lines("kind=")); n != len(writes) || all != n {
			t.Errorf("%d of %d log lines say that the lock was lost, want one for each:\n%s", n, all, s.log)
		}
	})
}

// P2: by the time the first byte leaves, whatever the reason, the record is written
// and the lock is free.
func TestTheSessionIsSavedBeforeTheFirstByte(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(w http.ResponseWriter, req *http.Request) error{
		"flush": func(w http.ResponseWriter, _ *http.Request) error { return http.NewResponseController(w).Flush() },
		"overflow": func(w http.ResponseWriter, _ *http.Request) error {
			_, err := w.Write(make([]byte, 100_000))
			return err
		},
		"read from": func(w http.ResponseWriter, _ *http.Request) error {
			_, err := io.Copy(w, strings.NewReader(strings.Repeat("x", 100_000)))
			return err
		},
		"commit": func(_ http.ResponseWriter, req *http.Request) error {
			return session.FromContext(req.Context()).Commit(req.Context())
		},
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			looked, gone := make(chan struct{}), make(chan struct{})
			s, v := begunWith(t, r, middleware.Options{}, "/stream", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
				s.Set("n", 7)
				must(t, write(w, req))
				close(looked)
				<-gone // the stream lasts until its client goes away
			})
			done := v.start(s.URL + "/stream")
			<-looked
			// The stream is still running, and holds nothing.
			v.get(s.URL+"/add").want(t, 200, "8")
			close(gone)
			(<-done).want(t, 200, "*")
		})
	}
}

// P2: an informational response is not the response yet, so it needs no commit.
func TestInformationalAnswersPassWithoutACommit(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		seen := make(chan struct{})
		s, v := begunWith(t, r, middleware.Options{}, "/hints", func(s *session.Session, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", "</style.css>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
			<-seen // the client has it already
			s.Set("n", 5)
			fmt.Fprint(w, "done")
		})
		wire := dial(t, s.Server)
		wire.send("GET /hints HTTP/1.1\r\nHost: a\r\nCookie: " + v.cookie(s).String() + "\r\n\r\n")
		if hints := wire.read(); hints.StatusCode != 103 || hints.Header.Get("Link") == "" || hints.sets() {
			t.Errorf("%d %v", hints.StatusCode, hints.Header)
		}
		close(seen)
		wire.read().want(t, 200, "done")
		v.get(s.URL+"/get").want(t, 200, "5")
	})
}

// P2: a client that closes the connection does not undo its request, which can still reopen its
// session if the handler wants so.
func TestADisconnectDoesNotCancelTheCommit(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		for _, reopens := range []bool{false, true} {
			working, saved := make(chan struct{}), make(chan struct{})
			mux := app()
			handle(mux, "/slow", func(s *session.Session, _ http.ResponseWriter, req *http.Request) {
				close(working)
				<-req.Context().Done()
				if ctx := context.WithoutCancel(req.Context()); reopens {
					must(t, s.Commit(ctx))
					if err := s.Reopen(req.Context()); !errors.Is(err, context.Canceled) {
						t.Errorf("Reopen = %v", err)
					}
					must(t, s.Reopen(ctx))
				}
				s.Set("n", 50)
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
		}
	})
}

// A stream of events arrives as it is sent. Long after its response has begun, the stream holds its session only
// while it writes to it. If the session is open when the handler returns, it is saved.
func TestServerSentEvents(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		more := make(chan struct{})
		s := siteWith(t, r, middleware.Options{}, "/events", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
			s.Set("seen", true)
			must(t, http.NewResponseController(w).Flush())
			for range more {
				must(t, s.Reopen(req.Context()))
				n := add(s)
				must(t, s.Commit(req.Context()))
				fmt.Fprintln(w, n)
				w.(http.Flusher).Flush()
			}
			must(t, s.Reopen(req.Context()))
			add(s)
		})
		v := newVisitor(t)
		res, err := v.Get(s.URL + "/events") // a new visitor
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		lines := bufio.NewScanner(res.Body)
		for n := 1; n < 6; n += 2 {
			more <- struct{}{}
			if !lines.Scan() || lines.Text() != fmt.Sprint(n) {
				t.Fatalf("event %q, want %d", lines.Text(), n)
			}
			v.get(s.URL+"/add").want(t, 200, fmt.Sprint(n+1)) // while the stream goes on
		}
		close(more)
		if lines.Scan() || lines.Err() != nil {
			t.Errorf("the stream ends with %q, %v", lines.Text(), lines.Err())
		}
		v.get(s.URL+"/get").want(t, 200, "7")
	})
}

// A websocket commits as it takes over the connection, and its 101 has the cookie. It reopens its session for each
// message, and ends the session if the message says so.
func TestWebsocket(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s := siteWith(t, r, middleware.Options{}, "/ws", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
			s.Set("n", 20)
			c, err := websocket.Accept(w, req, nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.CloseNow()
			for {
				_, data, err := c.Read(req.Context())
				if err != nil {
					return
				}
				answer := "sorry"
				if s.Reopen(req.Context()) == nil {
					if answer = fmt.Sprint(add(s)); string(data) == "logout" {
						s.Destroy()
					}
					must(t, s.Commit(req.Context()))
				}
				must(t, c.Write(req.Context(), websocket.MessageText, []byte(answer)))
			}
		})
		c, res, err := websocket.Dial(t.Context(), s.URL+"/ws", &websocket.DialOptions{HTTPClient: newVisitor(t).Client})
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseNow()
		if res.StatusCode != 101 || len(res.Cookies()) != 1 {
			t.Fatalf("%d %v", res.StatusCode, res.Header)
		}
		v := with(t, res.Cookies()...)
		say := func(what, want string) {
			t.Helper()
			must(t, c.Write(t.Context(), websocket.MessageText, []byte(what)))
			if _, data, err := c.Read(t.Context()); err != nil || string(data) != want {
				t.Fatalf("%q %v, want %q", data, err, want)
			}
		}
		v.get(s.URL+"/add").want(t, 200, "21") // while the websocket is open
		say("hello", "22")
		v.get(s.URL+"/add").want(t, 200, "23")
		say("logout", "24")
		v.get(s.URL+"/get").want(t, 200, "0")
		say("hello", "sorry")
		must(t, c.Close(websocket.StatusNormalClosure, ""))
	})
}
