package frameworks

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/a2139e8d/latchkey/session"
	"github.com/coder/websocket"
)

// A shop is a small program, written once with each framework as its users would write it:
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
// and what goes wrong: each of these first adds 100 to the cart.
//
//	POST /fail      an error in the framework's own way
//	POST /panic     a panic, with half=… after half an answer
//	POST /abort     http.ErrAbortHandler
//	POST /lose      what the test does to the session before the answer is complete
//	POST /late      a change after the commit
type shop struct {
	more chan struct{}
	lose func()
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

// converse says how many things are in the cart, and repeats the first thing that it hears.
func converse(ctx context.Context, c *websocket.Conn, n int) {
	defer c.CloseNow()
	if c.Write(ctx, websocket.MessageText, []byte(strconv.Itoa(n))) != nil {
		return
	}
	if kind, heard, err := c.Read(ctx); err == nil && c.Write(ctx, kind, heard) == nil {
		_ = c.Close(websocket.StatusNormalClosure, "")
	}
}

func reply(w io.Writer, what any) { fmt.Fprint(w, what) }
