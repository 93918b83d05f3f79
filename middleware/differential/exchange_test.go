package differential

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// patience is the time for something that should happen at once. Only a failure waits for so long.
const patience = 20 * time.Second

// An exchange is one run of a case: a connection with a server of its own.
type exchange struct {
	c        testCase
	v        variant
	protocol protocol
	cookie   string        // of the session, or one that means nothing
	arrived  arrivals      // at the client
	ended    chan struct{} // closed when the server has done with the connection
	handlers sync.WaitGroup

	afterwards func() // what recoveringInside does after a panic

	mu   sync.Mutex
	seen []string // by the handler, and around it
	log  []string
}

type exchangeKey struct{}

// run makes one exchange. If net/http's own timer for the first frame of HTTP/2 has ended it, the machine has stood still
// for two seconds, which says nothing of a handler: then run makes another one.
func (s *site) run(c testCase, v variant, p protocol) transcript {
	at <- struct{}{}
	defer func() { <-at }()
	for {
		got := s.runOnce(c, v, p)
		if !slices.ContainsFunc(got.log, func(line string) bool { return strings.Contains(line, "timeout waiting for SETTINGS") }) {
			return got
		}
	}
}

func (s *site) runOnce(c testCase, v variant, p protocol) transcript {
	x := &exchange{c: c, v: v, protocol: p, ended: make(chan struct{}), cookie: "oid=" + strings.Repeat("x", 120)}
	x.arrived.changed = make(chan struct{})
	if v.cookie {
		cookie := <-s.cookies
		defer func() { s.cookies <- cookie }()
		x.cookie = "sid=" + cookie
	}
	client, server, err := connection()
	if err != nil {
		return transcript{seen: []string{err.Error()}}
	}
	srv := x.serve(s.handler(x), server)
	var answers []answer
	if p == h2c {
		answers = x.overHTTP2(client)
	} else {
		answers = x.overHTTP1(client)
	}
	client.Close()
	select {
	case <-x.ended:
		x.handlers.Wait()
	case <-time.After(patience):
		x.note("the server is not done with the connection")
	}
	srv.Close()
	v.markUsual(answers)
	x.mu.Lock()
	defer x.mu.Unlock()
	return transcript{log: x.log, seen: x.seen, answers: answers}
}

// handler returns what the server serves: the case's handler, with the sessions around it, and
// what the case has outside of them.
func (s *site) handler(x *exchange) http.Handler {
	inner := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if x.v.use != nil {
			if err := x.v.use(r.Context()); err != nil {
				x.note("session: %v", err)
			}
		}
		if r.URL.Path == "/second" {
			fmt.Fprint(w, "second")
			return
		}
		x.c.handler(x, w, r)
	}))
	if !x.v.none {
		sessions, err := s.sessions(x.v)
		if err != nil {
			x.note("%v", err)
			return inner
		}
		inner = sessions.Handler(inner)
	}
	inner = x.counted(inner)
	outer := inner
	if x.c.outside != nil {
		outer = x.c.outside(x, inner)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x.handlers.Add(1)
		defer x.handlers.Done()
		if r.URL.Path == "/second" {
			inner.ServeHTTP(w, r)
			return
		}
		how := "with Goexit"
		defer func() { x.note("the handler ended %s", how) }()
		defer func() {
			if p := recover(); p != nil {
				how = fmt.Sprintf("with a panic: %v", p)
				panic(p)
			}
		}()
		outer.ServeHTTP(w, r)
		how = "well"
	})
}

// counted makes run wait for h, which an http.TimeoutHandler may have left behind: the sessions write their last line into
// the log when their handler has returned.
func (x *exchange) counted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x.handlers.Add(1)
		defer x.handlers.Done()
		h.ServeHTTP(w, r)
	})
}

// serve starts a server for one connection.
func (x *exchange) serve(h http.Handler, conn net.Conn) *http.Server {
	var once sync.Once
	srv := &http.Server{
		Handler:     h,
		ErrorLog:    log.New(x, "", 0),
		Protocols:   new(http.Protocols),
		BaseContext: func(net.Listener) context.Context { return context.WithValue(context.Background(), exchangeKey{}, x) },
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed || state == http.StateHijacked {
				once.Do(func() { close(x.ended) })
			}
		},
	}
	if x.c.server != nil {
		x.c.server(srv)
	}
	l := &listener{conn: make(chan net.Conn, 1), closed: make(chan struct{}), addr: conn.LocalAddr()}
	l.conn <- conn
	switch x.protocol {
	case h2c:
		srv.Protocols.SetUnencryptedHTTP2(true)
		go srv.Serve(l)
	default:
		srv.Protocols.SetHTTP1(true)
		go srv.Serve(l)
	}
	return srv
}

// note adds a line to the transcript: something that the handler, or one around it, has seen.
func (x *exchange) note(format string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.seen = append(x.seen, addresses.ReplaceAllString(fmt.Sprintf(format, args...), "ADDR"))
}

// wrote notes the result of a write.
func (x *exchange) wrote(n any, err error) { x.note("wrote %v, %v", n, err) }

// write writes, and notes the result.
func (x *exchange) write(w io.Writer, s string) { x.wrote(w.Write([]byte(s))) }

// await waits until the client has received text, as part of a body.
func (x *exchange) await(text string) {
	if !x.arrived.await(func(b []byte) bool { return bytes.Contains(b, []byte(text)) }) {
		x.note("%q did not arrive", text)
	}
}

// Write implements io.Writer for the server's log.
func (x *exchange) Write(p []byte) (int, error) {
	line, _, _ := strings.Cut(string(p), "\n")
	if !strings.Contains(line, "panic serving") { // noted where the handler ended
		x.logged(line)
	}
	return len(p), nil
}

var (
	addresses = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	ours      = regexp.MustCompile(`from .*/latchkey/middleware\.\S+ \(.*\)`)
	theirs    = regexp.MustCompile(`from .*/latchkey/middleware/differential\.\S+ \(.*\)`)
)

func (x *exchange) logged(line string) {
	line = addresses.ReplaceAllString(line, "ADDR")
	line = theirs.ReplaceAllString(line, "from the handler")
	line = ours.ReplaceAllString(line, "from the middleware")
	x.mu.Lock()
	defer x.mu.Unlock()
	x.log = append(x.log, line)
}
