// Package frameworks tests Latchkey in programs that are written with a framework, and as they are
// served: behind a cache.
package frameworks

import (
	"bytes"
	"context"
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
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // for the recoverer
	goleak.VerifyTestMain(m)
}

// patience is for machines that are busy with other tests.
const patience = 20 * time.Second

var testKey = bytes.Repeat([]byte("key "), 8)

// A site is a running program. log has the output of Latchkey, net/http and the recoverers.
type site struct {
	*httptest.Server
	redis *redistest.Server
	log   *logtest.Buffer
}

// newSite serves the handler that program makes of the sessions.
func newSite(t *testing.T, o middleware.Options, program func(*middleware.Sessions) http.Handler) *site {
	t.Helper()
	s := &site{redis: redistest.Embedded(t), log: &logtest.Buffer{}}
	logger := s.log.Logger()
	o.Keys, o.Cookie.Name, o.Logger = [][]byte{testKey}, "sid", logger
	sessions, err := middleware.New(store.New(s.redis.Pool(t, 8), store.Options{Timeout: patience}), o)
	if err != nil {
		t.Fatal(err)
	}
	s.Server = httptest.NewUnstartedServer(program(sessions))
	s.Config.ErrorLog = slog.NewLogLogger(logger.Handler(), slog.LevelError)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// loseLocks makes the commits of all running requests fail, as after a pause that was longer than the
// lease.
func (s *site) loseLocks(t *testing.T) {
	t.Helper()
	for _, key := range s.redis.Keys(t) {
		if strings.HasSuffix(key, ".lock") {
			s.redis.Do(t, "DEL", key)
		}
	}
}

// A visitor is a browser: it keeps cookies.
type visitor struct {
	t   *testing.T
	url string
	*http.Client
}

func newVisitor(t *testing.T, s *site) *visitor {
	return newVisitorBy(t, s.URL, &http.Transport{MaxIdleConnsPerHost: 100, DisableCompression: true})
}

func newVisitorBy(t *testing.T, url string, transport *http.Transport) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &visitor{t: t, url: url, Client: &http.Client{
		Jar:           jar,
		Transport:     transport,
		Timeout:       patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// An answer is a response that was read to its end.
type answer struct {
	*http.Response
	body string
	err  error // of the round trip, or of reading the body
}

// send sends a request with a form. A client does not repeat a POST when the connection breaks.
func (v *visitor) send(method, path string, form ...string) answer {
	v.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, v.url+path, strings.NewReader(strings.Join(form, "&")))
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := v.Do(req)
	if err != nil {
		return answer{Response: &http.Response{}, err: err}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return answer{res, string(text), err}
}

func (v *visitor) get(path string) answer { return v.send(http.MethodGet, path) }

func (v *visitor) post(path string, form ...string) answer {
	return v.send(http.MethodPost, path, form...)
}

// want checks status and body; the body may be "*".
func (a answer) want(t *testing.T, status int, body string) {
	t.Helper()
	if a.err != nil || a.StatusCode != status || body != "*" && strings.TrimSpace(a.body) != body {
		t.Fatalf("answer is %d %q, error %v; want %d %q", a.StatusCode, a.body, a.err, status, body)
	}
}

// sets reports whether the response sets or deletes a cookie.
func (a answer) sets() bool { return len(a.Header["Set-Cookie"]) > 0 }

// cookie returns the value of the visitor's session cookie, or "".
func (v *visitor) cookie() string {
	v.t.Helper()
	u, err := url.Parse(v.url)
	if err != nil {
		v.t.Fatal(err)
	}
	for _, c := range v.Jar.Cookies(u) {
		return c.Value
	}
	return ""
}
