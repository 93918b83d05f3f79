package middleware_test

import (
	"bufio"
	"fmt"
	"net/http"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/coder/websocket"
)

// A stream of events arrives as it is sent. It holds its session only while it writes to it, long
// after its answer has begun, and what it leaves open at its end is saved.
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

// A websocket commits as it takes over the connection, and its 101 has the cookie. It reopens its
// session with each message, and ends it if it is told to.
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
