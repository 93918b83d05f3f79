package frameworks

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/coder/websocket"
)

// A shop is a small program, written once with each framework as its users would write it. What
// does not answer in a framework's own way is a handler of net/http in all of them.
//
//	GET  /          greets the user, and shows the flash message once
//	POST /login     with user=…: a new id, a flash message, and on to /
//	POST /logout    ends the session, and on to /
//	POST /add       adds one to the number of things in the cart
//	GET  /cart      shows it
//	GET  /account/  the user's own page; who has not logged in is sent away with 401
//	GET  /events    server-sent events: one at once, another when more is closed
//	GET  /ws        a websocket that says how many things are in the cart, and then repeats
//	                what it hears
//
//	GET  /shop/{item}      runs page, in mode Optimistic
//	GET  /its-mode/{item}  the same where the route says its mode; not with gin
//
// and what goes wrong: each of these first adds 100 to the cart.
//
//	POST /fail      an error in the framework's own way
//	POST /panic     a panic, with half=… after half an answer
//	POST /abort     http.ErrAbortHandler
//	POST /lose      what the test does to the session before the answer is complete
//	POST /late      a change after the commit
type shop struct {
	sessions *middleware.Sessions
	more     chan struct{}
	lose     func()
	page     func(r *http.Request, item string) int
}

// modes are those of the shop's routes.
func modes(r *http.Request) middleware.Mode {
	switch {
	case strings.HasPrefix(r.URL.Path, "/shop/"):
		return middleware.Optimistic
	case strings.HasPrefix(r.URL.Path, "/its-mode/"):
		return middleware.Lazy
	default:
		return middleware.Exclusive
	}
}

// What the shops have in common.

func add(s *session.Session, n int) int {
	have, _ := session.Get[int](s, "cart")
	s.Set("cart", have+n)
	return have + n
}

func inCart(s *session.Session) int {
	n, _ := session.Get[int](s, "cart")
	return n
}

func greeting(s *session.Session) string {
	user, _ := session.Get[string](s, "user")
	flash, _ := session.Pop[string](s, "flash")
	return "hello " + user + flash
}

func login(s *session.Session, user string) {
	s.Renew()
	s.Set("user", user)
	s.Set("flash", ", welcome back")
}

// events is a stream.
func (s *shop) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: %d\n\n", add(session.FromContext(r.Context()), 1))
	_ = http.NewResponseController(w).Flush()
	select {
	case <-s.more:
		fmt.Fprint(w, "data: more\n\n")
	case <-r.Context().Done():
	}
}

// websocket says how many things are in the cart, and repeats the first thing that it hears.
func (s *shop) websocket(w http.ResponseWriter, r *http.Request) {
	ctx, n := r.Context(), add(session.FromContext(r.Context()), 1)
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	if c.Write(ctx, websocket.MessageText, []byte(strconv.Itoa(n))) != nil {
		return
	}
	if kind, heard, err := c.Read(ctx); err == nil && c.Write(ctx, kind, heard) == nil {
		_ = c.Close(websocket.StatusNormalClosure, "")
	}
}

// wrong are the handlers that fail in any framework, by their paths.
func (s *shop) wrong() map[string]http.HandlerFunc {
	handlers := map[string]http.HandlerFunc{
		"/panic": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Half", r.FormValue("half"))
			if half := r.FormValue("half"); half != "" {
				fmt.Fprint(w, half)
			}
			panic("boom")
		},
		"/abort": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "half an answer")
			panic(http.ErrAbortHandler)
		},
		"/lose": func(w http.ResponseWriter, _ *http.Request) {
			s.lose()
			fmt.Fprint(w, "all is well")
		},
		"/late": func(w http.ResponseWriter, r *http.Request) {
			session := session.FromContext(r.Context())
			_ = session.Commit(r.Context())
			session.Set("flash", ", that was late")
			fmt.Fprint(w, "all is well")
		},
	}
	for path, h := range handlers {
		handlers[path] = func(w http.ResponseWriter, r *http.Request) {
			add(session.FromContext(r.Context()), 100)
			h(w, r)
		}
	}
	return handlers
}
