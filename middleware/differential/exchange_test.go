package differential

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// patience is for what should come at once. Only a failure waits for so long.
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

	afterwards func() // a case's own

	mu   sync.Mutex
	seen []string // by the handler, and around it
	log  []string
}

type exchangeKey struct{}

// run makes one exchange.
func (s *site) run(c testCase, v variant, p protocol) transcript {
	at <- struct{}{}
	defer func() { <-at }()
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

// A listener accepts one connection.
type listener struct {
	conn   chan net.Conn
	once   sync.Once
	closed chan struct{}
	addr   net.Addr
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *listener) Addr() net.Addr { return l.addr }

var dialling sync.Mutex

// connection returns the two ends of a new connection. All are made with one listener, one
// after another: a port for each would exhaust them.
func connection() (client, server net.Conn, err error) {
	dialling.Lock()
	defer dialling.Unlock()
	l, err := theListener()
	if err != nil {
		return nil, nil, err
	}
	if client, err = net.Dial("tcp", l.Addr().String()); err != nil {
		return nil, nil, err
	}
	for {
		if server, err = l.Accept(); err != nil {
			client.Close()
			return nil, nil, err
		}
		if server.RemoteAddr().String() == client.LocalAddr().String() {
			return client, server, nil
		}
		server.Close() // another process's, by chance
	}
}

var theListener = sync.OnceValues(func() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") })

// arrivals are the bytes that the client has received so far.
type arrivals struct {
	mu      sync.Mutex
	bytes   []byte
	over    bool
	changed chan struct{} // closed at the next change
}

func (a *arrivals) add(p []byte, over bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bytes, a.over = append(a.bytes, p...), a.over || over
	close(a.changed)
	a.changed = make(chan struct{})
}

// await waits until found is true of what has arrived.
func (a *arrivals) await(found func([]byte) bool) bool {
	limit := time.After(patience)
	for {
		a.mu.Lock()
		yes, over, changed := found(a.bytes), a.over, a.changed
		a.mu.Unlock()
		if yes || over {
			return yes
		}
		select {
		case <-changed:
		case <-limit:
			return false
		}
	}
}

func (a *arrivals) all() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bytes
}

// A variant is a way to run a case: a mode, whether the request comes with a session, and what
// its handler does with it first.
type variant struct {
	name   string
	none   bool // the handler runs without the middleware
	mode   middleware.Mode
	cookie bool                        // the request comes with a session
	use    func(context.Context) error // before the case's handler
	opens  bool                        // there is an open session while the handler runs
	uses   bool                        // the handler has used it
	most   []protocol                  // over which it is run without -all
	sets   bool                        // the answer sets the cookie
}

var without = variant{name: "without sessions", none: true}

var variants = []variant{
	{name: "None", mode: middleware.None, cookie: true},
	{name: "Exclusive, no cookie", opens: true},
	{name: "Exclusive, cookie", most: protocols, cookie: true, opens: true},
	{name: "Exclusive, creates", most: http1[1:], use: write, opens: true, uses: true, sets: true},
	{name: "Exclusive, writes", cookie: true, use: write, opens: true, uses: true},
	{name: "Exclusive, rewrites", cookie: true, use: reopen, opens: true, uses: true},
	{name: "ReadOnly, reads", mode: middleware.ReadOnly, cookie: true, use: read, opens: true, uses: true},
	{name: "Optimistic, reads", mode: middleware.Optimistic, cookie: true, use: read, opens: true, uses: true},
	{name: "Optimistic, writes", mode: middleware.Optimistic, cookie: true, use: write, opens: true, uses: true},
	{name: "Lazy, idle", mode: middleware.Lazy, cookie: true},
	{name: "Lazy, writes", mode: middleware.Lazy, cookie: true, use: start, opens: true, uses: true},
}

func read(ctx context.Context) error {
	session.Get[int](session.FromContext(ctx), "n")
	return nil
}

func write(ctx context.Context) error {
	s := session.FromContext(ctx)
	n, _ := session.Get[int](s, "n")
	s.Set("n", n+1)
	return nil
}

func reopen(ctx context.Context) error {
	if err := write(ctx); err != nil {
		return err
	}
	s := session.FromContext(ctx)
	if err := s.Commit(ctx); err != nil {
		return err
	}
	if err := s.Reopen(ctx); err != nil {
		return err
	}
	s.Renew()
	s.Discard()
	return write(ctx)
}

func start(ctx context.Context) error {
	if _, err := session.Start(ctx); err != nil {
		return err
	}
	return write(ctx)
}

// A site is where the sessions of all variants are kept.
type site struct {
	store   *store.Store
	cookies chan string // of sessions that no request uses just now: none waits for another
}

func newSite(t *testing.T) *site {
	s := &site{
		store:   store.New(redistest.Embedded(t).Pool(t, 4), store.Options{}),
		cookies: make(chan string, cap(at)),
	}
	t.Cleanup(func() { s.store.Close() })
	for range cap(s.cookies) {
		s.cookies <- s.begin(t)
	}
	return s
}

// sessions returns the middleware for one exchange: in its log, lines of others could take the
// place of its own.
func (s *site) sessions(v variant) (*middleware.Sessions, error) {
	var ttl time.Duration
	if v.sets {
		ttl = time.Second // nobody comes back, and the embedded Redis is slow with many keys
	}
	return middleware.New(s.store, middleware.Options{
		Keys:   [][]byte{[]byte("0123456789abcdef0123456789abcdef")},
		TTL:    ttl,
		Cookie: http.Cookie{Name: "sid"},
		Mode:   v.modeOf,
		Logger: slog.New(noting{}),
	})
}

// modeOf is Options.Mode. Mode Optimistic is for some methods only.
func (v variant) modeOf(r *http.Request) middleware.Mode {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return v.mode
	}
	if v.mode == middleware.Optimistic {
		return middleware.Exclusive
	}
	return v.mode
}

// begin begins a session, and returns its cookie.
func (s *site) begin(t *testing.T) string {
	sessions, err := s.sessions(variant{})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	sessions.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_ = write(r.Context())
	})).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	for _, c := range w.Result().Cookies() {
		return c.Value
	}
	t.Fatal("no cookie was set")
	return ""
}

// noting notes what the sessions log in the transcript of the request.
type noting struct{ slog.Handler }

func (noting) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }
func (n noting) WithAttrs([]slog.Attr) slog.Handler         { return n }

func (noting) Handle(ctx context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "error" || a.Key == "rule" {
			line += ": " + a.Value.String()
		}
		return true
	})
	if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		x.logged(line)
	}
	return nil
}
