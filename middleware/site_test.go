package middleware_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/logtest"
	"github.com/a2139e8d/latchkey/internal/memnet"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var testKey = bytes.Repeat([]byte("k"), 32)

// steady are options by which no lease ends, no command times out and no connection is probed,
// however busy the machine is.
var steady = store.Options{Lease: 30 * time.Second, Timeout: 20 * time.Second}

// A site is a program with sessions: one process of possibly several on the same
// Redis.
type site struct {
	*httptest.Server
	log      *logtest.Buffer
	sessions *middleware.Sessions
}

// newSite serves mux with sessions on the Redis of pool. o may leave out Keys
// and Cookie.
func newSite(t *testing.T, pool *redis.Pool, o middleware.Options, mux http.Handler) *site {
	t.Helper()
	return newSiteOn(t, store.New(pool, steady), o, mux)
}

func newSiteOn(t *testing.T, st *store.Store, o middleware.Options, mux http.Handler) *site {
	t.Helper()
	log := &logtest.Buffer{}
	if o.Keys == nil {
		o.Keys = [][]byte{testKey}
	}
	if o.Cookie.Name == "" {
		o.Cookie.Name = "sid" // over plain HTTP a Secure cookie would not come back
	}
	o.Logger = log.Logger()
	s, err := middleware.New(st, o)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(s.Handler(mux))
	srv.Listener.Close()
	srv.Listener = memnet.Listen("")
	srv.Config.ErrorLog = slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug)
	srv.Start()
	t.Cleanup(srv.Close)
	return &site{Server: srv, log: log, sessions: s}
}

// app is what most tests serve: counters and the life of a session.
func app() *http.ServeMux {
	mux := http.NewServeMux()
	handle(mux, "/add", func(s *session.Session, w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, add(s)) })
	handle(mux, "/get", func(s *session.Session, w http.ResponseWriter, _ *http.Request) {
		n, _ := session.Get[int](s, "n")
		fmt.Fprint(w, n)
	})
	handle(mux, "/set/{key}", func(s *session.Session, _ http.ResponseWriter, r *http.Request) { s.Set(r.PathValue("key"), 1) })
	handle(mux, "/len", func(s *session.Session, w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, s.Len()) })
	handle(mux, "/id", func(s *session.Session, w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, s.ID()) })
	handle(mux, "/login", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) {
		s.Renew()
		s.Set("user", "ann")
	})
	handle(mux, "/logout", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) { s.Destroy() })
	mux.HandleFunc("/nothing", func(http.ResponseWriter, *http.Request) {})
	return mux
}

// A visitor is a browser: it keeps cookies.
type visitor struct {
	t *testing.T
	*http.Client
}

func newVisitor(t *testing.T) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 100, DialContext: memnet.DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	return &visitor{t: t, Client: &http.Client{
		Jar:           jar,
		Transport:     transport,
		Timeout:       2 * time.Minute, // longer than anything waits for Redis
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// An answer is a response that was read to its end.
type answer struct {
	*http.Response
	body string
	err  error // of the exchange or of reading the body
}

func (v *visitor) do(req *http.Request) answer {
	res, err := v.Do(req)
	if err != nil {
		return answer{Response: &http.Response{}, err: err}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return answer{res, string(body), err}
}

func (v *visitor) get(url string) answer {
	return v.send(context.Background(), http.MethodGet, url, nil)
}

// post is for answers that are cut off, since the client would repeat a GET.
func (v *visitor) post(url string) answer {
	return v.send(context.Background(), http.MethodPost, url, nil)
}

func (v *visitor) send(ctx context.Context, method, url string, body io.Reader) answer {
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return answer{Response: &http.Response{}, err: err}
	}
	return v.do(req)
}

// want checks status and body; the body may be "*".
func (a answer) want(t *testing.T, status int, body string) {
	t.Helper()
	if a.err != nil || a.StatusCode != status || body != "*" && strings.TrimSpace(a.body) != body {
		t.Fatalf("answer is %d %q, error %v; want %d %q", a.StatusCode, a.body, a.err, status, body)
	}
}

// sets reports whether the answer sets or deletes the session's cookie.
func (a answer) sets() bool { return a.Header.Get("Set-Cookie") != "" }

// cookies returns the visitor's cookies for the site, to be taken elsewhere.
func (v *visitor) cookies(s *site) []*http.Cookie {
	req, _ := http.NewRequest(http.MethodGet, s.URL, nil)
	return v.Jar.Cookies(req.URL)
}

// cookie returns the visitor's only cookie for the site.
func (v *visitor) cookie(s *site) *http.Cookie {
	v.t.Helper()
	all := v.cookies(s)
	if len(all) != 1 {
		v.t.Fatalf("the visitor has the cookies %v, want one", all)
	}
	return all[0]
}

// with returns a visitor that always sends these cookies.
func with(t *testing.T, cookies ...*http.Cookie) *visitor {
	t.Helper()
	v := newVisitor(t)
	v.Jar = fixedJar(cookies)
	return v
}

type fixedJar []*http.Cookie

func (j fixedJar) Cookies(*url.URL) []*http.Cookie     { return j }
func (j fixedJar) SetCookies(*url.URL, []*http.Cookie) {}

// record and lock are the keys of the visitor's session.
func keysOf(id string) (record, lock string) {
	record = "latchkey:{" + id + "}"
	if tag, rest, ofUser := strings.Cut(id, "."); ofUser {
		record = "latchkey:{" + tag + "}:" + rest
	}
	return record, record + ".lock"
}
