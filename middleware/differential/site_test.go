package differential

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

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
		store:   store.New(redistest.Embedded(t).Pool(t, 4), store.Options{Timeout: patience}),
		cookies: make(chan string, cap(at)),
	}
	t.Cleanup(func() { s.store.Close() })
	for range cap(s.cookies) {
		s.cookies <- s.begin(t)
	}
	return s
}

// sessions returns middleware of its own for each exchange. In a shared log, lines of others could take the place of
// the exchange's lines.
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

func (n noting) WithAttrs([]slog.Attr) slog.Handler { return n }

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
