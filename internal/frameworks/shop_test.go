package frameworks

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/coder/websocket"
	"github.com/gin-gonic/gin"
	chimiddleware "github.com/go-chi/chi/v5/middleware"
	"github.com/klauspost/compress/gzhttp"
	"github.com/labstack/echo/v4"
	echomiddleware "github.com/labstack/echo/v4/middleware"
)

// A shop is a small program, written once with each framework as its users would write it. What
// does not answer in a framework's own way is a handler of net/http in all of them.
//
//	GET  /          greets the user, and shows the flash message once
//	POST /login     with user=…: a new ID, a flash message, and on to /
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

// modes are the modes of the shop's routes.
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

// The shops have these in common.

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

// wrong are the handlers that fail, the same in any framework, by their paths.
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

// A program is a shop with sessions and other middleware around it.
type program struct {
	name string
	of   func(*shop, *middleware.Sessions) http.Handler
}

// programs are all the orders that work. The guide recommends recoverer, sessions, framework.
var programs = []program{
	{"echo's middleware", func(s *shop, sessions *middleware.Sessions) http.Handler {
		return s.echo(echomiddleware.Recover(), echo.WrapMiddleware(sessions.Handler))
	}},
	{"echo's middleware, compressed", func(s *shop, sessions *middleware.Sessions) http.Handler {
		return s.echo(echomiddleware.Gzip(), echomiddleware.Recover(), echo.WrapMiddleware(sessions.Handler))
	}},
	{"chi", func(s *shop, sessions *middleware.Sessions) http.Handler {
		return s.chi(chimiddleware.Recoverer, sessions.Handler)
	}},
	{"chi, compressed", func(s *shop, sessions *middleware.Sessions) http.Handler {
		return s.chi(chimiddleware.Compress(5), chimiddleware.Recoverer, sessions.Handler)
	}},
	{"chi, compressed inside", func(s *shop, sessions *middleware.Sessions) http.Handler {
		return s.chi(middleware.Recoverer, sessions.Handler, chimiddleware.Compress(5))
	}},
	{"gin", func(s *shop, sessions *middleware.Sessions) http.Handler {
		return middleware.Recoverer(sessions.Handler(s.gin()))
	}},
	{"gin, compressed", func(s *shop, sessions *middleware.Sessions) http.Handler {
		return gzip(middleware.Recoverer(sessions.Handler(s.gin())))
	}},
	{"echo", func(s *shop, sessions *middleware.Sessions) http.Handler {
		return middleware.Recoverer(sessions.Handler(s.echo()))
	}},
	{"echo, compressed", func(s *shop, sessions *middleware.Sessions) http.Handler {
		return gzip(middleware.Recoverer(sessions.Handler(s.echo())))
	}},
}

// recoveringInside are the orders that do not work: the panic never reaches the sessions.
var recoveringInside = []program{
	{"chi", func(s *shop, sessions *middleware.Sessions) http.Handler {
		return s.chi(sessions.Handler, chimiddleware.Recoverer)
	}},
	{"gin", func(s *shop, sessions *middleware.Sessions) http.Handler {
		return sessions.Handler(s.gin(gin.RecoveryWithWriter(nil)))
	}},
	{"echo", func(s *shop, sessions *middleware.Sessions) http.Handler {
		return sessions.Handler(s.echo(echomiddleware.Recover()))
	}},
}

func gzip(next http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(0))
	if err != nil {
		panic(err)
	}
	return wrap(next)
}

// each runs a test with every program, in parallel.
func each(t *testing.T, of []program, f func(t *testing.T, s *site, shop *shop)) {
	t.Parallel()
	for _, p := range of {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			shop := &shop{more: make(chan struct{})}
			f(t, newSite(t, middleware.Options{Mode: modes}, func(sessions *middleware.Sessions) http.Handler {
				shop.sessions = sessions
				return p.of(shop, sessions)
			}), shop)
		})
	}
}
