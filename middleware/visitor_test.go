package middleware_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/memnet"
)

// hold sends a request that keeps its session: to /hold or, if the request is to write, to /pause. hold returns when
// the handler has begun. free lets the handler go on, and returns the answer.
func (v *visitor) hold(url string) (free func() answer) {
	h := held{make(chan struct{}), make(chan struct{})}
	key := fmt.Sprint(helds.Add(1))
	allHeld.Store(key, h)
	done := v.start(url + "?held=" + key)
	<-h.begun
	return func() answer {
		close(h.free)
		return <-done
	}
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

func (j fixedJar) Cookies(*url.URL) []*http.Cookie { return j }

func (j fixedJar) SetCookies(*url.URL, []*http.Cookie) {}

// start sends a request and does not wait for its answer.
func (v *visitor) start(url string) chan answer {
	done := make(chan answer, 1)
	go func() { done <- v.get(url) }()
	return done
}

// everywhere makes the visitor send the same cookies to all sites: the processes of one program have one name for
// their visitors.
func (v *visitor) everywhere() *visitor {
	v.Jar = oneName{v.Jar}
	return v
}

type oneName struct{ http.CookieJar }

func (j oneName) Cookies(*url.URL) []*http.Cookie { return j.CookieJar.Cookies(nameOfAll) }

func (j oneName) SetCookies(_ *url.URL, set []*http.Cookie) { j.CookieJar.SetCookies(nameOfAll, set) }

var nameOfAll = &url.URL{Scheme: "http", Host: "site.memory"}

// navigate sends a request as a click does.
func (v *visitor) navigate(method, url string) answer {
	return v.fetch(context.Background(), method, url, "navigate")
}

// background sends a request as a script does.
func (v *visitor) background(method, url string) answer {
	return v.fetch(context.Background(), method, url, "cors")
}

func (v *visitor) fetch(ctx context.Context, method, url, mode string) answer {
	v.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set("Sec-Fetch-Mode", mode)
	return v.do(req)
}
