package middleware_test

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/coder/websocket"
)

// A stream writes to its session long after its answer has begun, and holds it only while it does.
func TestAStreamReopensItsSession(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		more := make(chan struct{})
		mux := app()
		handle(mux, "/events", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
			s.Set("seen", true)
			w.(http.Flusher).Flush()
			for range more {
				must(t, s.Reopen(req.Context()))
				n := add(s)
				must(t, s.Commit(req.Context()))
				fmt.Fprintln(w, n)
				w.(http.Flusher).Flush()
			}
			must(t, s.Reopen(req.Context()))
			add(s) // committed at the end of the handler
		})
		s := newSite(t, r.Pool(t, 4), middleware.Options{LockWait: 5 * time.Second}, mux)
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

// A websocket does so with each message, and ends the session if it is told to.
func TestAWebsocketReopensItsSession(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		handle(mux, "/ws", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
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
		s, v := begun(t, r, middleware.Options{}, mux)
		c, _, err := websocket.Dial(t.Context(), s.URL+"/ws", &websocket.DialOptions{HTTPClient: v.Client})
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseNow()
		say := func(what, want string) {
			t.Helper()
			must(t, c.Write(t.Context(), websocket.MessageText, []byte(what)))
			if _, data, err := c.Read(t.Context()); err != nil || string(data) != want {
				t.Fatalf("%q %v, want %q", data, err, want)
			}
		}
		say("hello", "2")
		v.get(s.URL+"/add").want(t, 200, "3") // while the websocket is open
		say("hello", "4")
		say("logout", "5")
		v.get(s.URL+"/get").want(t, 200, "0")
		say("hello", "sorry")
		must(t, c.Close(websocket.StatusNormalClosure, ""))
	})
}

// P2: once the answer has begun it cannot take a cookie to the client. What needs one is not saved,
// and the answer is cut off, so that nobody takes it for a success. A logout needs none.
func TestACommitThatNeedsACookieIsTooLateOnceTheAnswerHasBegun(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	for name, test := range map[string]struct {
		visits bool // there is a session
		change func(*session.Session)
		fails  bool
		keys   int // that it has afterwards
	}{
		"a login":       {true, func(s *session.Session) { s.Renew(); s.Set("user", "ann") }, true, 1},
		"a new session": {false, func(s *session.Session) { s.Set("user", "ann") }, true, 0},
		"a logout":      {true, (*session.Session).Destroy, false, 0},
		"a write":       {true, func(s *session.Session) { s.Set("user", "ann") }, false, 2},
		"nothing":       {false, func(s *session.Session) { s.Len() }, false, 0},
	} {
		for _, explicit := range []bool{true, false} {
			t.Run(fmt.Sprint(name, explicit), func(t *testing.T) {
				t.Parallel()
				mux := app()
				handle(mux, "/begun", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
					w.(http.Flusher).Flush()
					must(t, s.Reopen(req.Context()))
					test.change(s)
					if explicit {
						err := s.Commit(req.Context())
						if (err != nil) != test.fails || err != nil && !strings.Contains(err.Error(), "no cookie can reach the client") {
							t.Errorf("Commit = %v", err)
						}
					}
					fmt.Fprint(w, "all is well")
				})
				s := newSite(t, r.Pool(t, 4), middleware.Options{LockWait: time.Second}, mux)
				v := newVisitor(t)
				if test.visits {
					v.get(s.URL+"/add").want(t, 200, "1")
				}
				a := v.post(s.URL + "/begun")
				if (a.err != nil) != test.fails || a.sets() {
					t.Errorf("answer %q, %v, header %v", a.body, a.err, a.Header)
				}
				if lines := s.log.Lines("kind=other", "no cookie can reach"); (len(lines) == 1) != test.fails {
					t.Errorf("log: %q", lines)
				}
				v.get(s.URL+"/len").want(t, 200, fmt.Sprint(test.keys)) // at once: the lock is free
			})
		}
	}
}

// P2: a stream whose commit has failed may reopen its session and try again. What it sets in
// between is a late change like any other.
func TestAStreamTriesAgain(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	for name, late := range map[string]bool{"again": false, "late": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mux := app()
			handle(mux, "/stream", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
				w.(http.Flusher).Flush()
				must(t, s.Reopen(req.Context()))
				s.Set("n", make(chan int))
				if s.Commit(req.Context()) == nil {
					t.Error("a channel was saved")
				}
				if late {
					s.Set("n", 50)
				}
				if err := s.Reopen(req.Context()); (err != nil) != late {
					t.Errorf("Reopen = %v", err)
					return
				}
				if !late {
					s.Set("n", 5)
					must(t, s.Commit(req.Context()))
				}
				fmt.Fprint(w, "all is well")
			})
			s, v := begun(t, r, middleware.Options{}, mux)
			a, want := v.post(s.URL+"/stream"), "5"
			if late {
				want = "1"
			}
			if (a.err != nil) != late {
				t.Errorf("answer %q, %v", a.body, a.err)
			}
			v.get(s.URL+"/get").want(t, 200, want)
		})
	}
}

// A request's goroutines reopen and commit its session in turn, others read it all the while, and
// the answer begins in between. All is saved, and other requests lose nothing either.
func TestGoroutinesReopenTheSessionAtOnce(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		handle(mux, "/crowd", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
			s.Set("begun", true)
			must(t, s.Commit(req.Context()))
			var crowd sync.WaitGroup
			var turn sync.Mutex
			for i := range 8 {
				crowd.Go(func() {
					turn.Lock()
					defer turn.Unlock()
					must(t, s.Reopen(req.Context()))
					s.Set(fmt.Sprint("own", i), i)
					must(t, s.Commit(req.Context()))
				})
				crowd.Go(func() {
					if n := s.Len(); n < 2 || s.IsNew() || s.ID() == "" {
						t.Errorf("a goroutine sees %d keys", n)
					}
				})
			}
			turn.Lock()
			w.(http.Flusher).Flush()
			turn.Unlock()
			crowd.Wait()
		})
		sites := []*site{newSite(t, r.Pool(t, 4), middleware.Options{}, mux), newSite(t, r.Pool(t, 4), middleware.Options{}, mux)}
		v := newVisitor(t)
		v.get(sites[0].URL+"/add").want(t, 200, "1")
		var others sync.WaitGroup
		for i := range 16 {
			others.Go(func() { v.get(sites[i%2].URL+"/set/"+fmt.Sprint("other", i)).want(t, 200, "") })
		}
		v.get(sites[0].URL+"/crowd").want(t, 200, "")
		others.Wait()
		v.get(sites[1].URL+"/len").want(t, 200, "26")
	})
}
