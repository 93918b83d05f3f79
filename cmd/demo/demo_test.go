package main

import (
	"flag"
	"html"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "4") // most wait for processes
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		demotest.Clean()
		os.Exit(code)
	}))
}

// newClient returns a client that keeps cookies. It treats all processes as one site, since cookies do not
// depend on ports.
func newClient(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar, Transport: newTransport(t), Timeout: time.Minute}
}

func newTransport(t *testing.T) *http.Transport {
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// post and get fail the test unless the response is a success, and return its body. A form is name, value,
// name, value.
func post(t *testing.T, c *http.Client, target string, form ...string) string {
	t.Helper()
	return must(t, c, http.MethodPost, target, form)
}

func get(t *testing.T, c *http.Client, target string) string {
	t.Helper()
	return must(t, c, http.MethodGet, target, nil)
}

func must(t *testing.T, c *http.Client, method, target string, pairs []string) string {
	t.Helper()
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	body, err := call(t.Context(), c, method, target, form)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(body)
}

// The demo's contract, end to end, on the embedded Redis.
func TestTheDemoServes(t *testing.T) {
	t.Parallel()
	p := demotest.Start(t)
	c := newClient(t)
	get(t, c, p.URL+"/healthz")
	for path, want := range map[string]string{"/": "<!doctype html>", "/app.js": "fetch", "/style.css": "prefers-color-scheme"} {
		if body := get(t, c, p.URL+path); !strings.Contains(strings.ToLower(body), want) {
			t.Errorf("%s has no %q", path, want)
		}
	}

	post(t, c, p.URL+"/reset")
	post(t, c, p.URL+"/set", "name", "a")
	post(t, c, p.URL+"/set", "name", "b")
	wants := func(path, want string) {
		t.Helper()
		if got := get(t, c, p.URL+path); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	wants("/result", "2")
	wants("/params", `["a","b"]`)
	if got := post(t, c, p.URL+"/incr"); got != "1" {
		t.Errorf("/incr is %s, want 1", got)
	}
	post(t, c, p.URL+"/login")
	wants("/count", "1")
	post(t, c, p.URL+"/logout")
	wants("/count", "0")
	wants("/info", `{"lock":"spin","redis":"embedded"}`)
	if _, err := call(t.Context(), c, http.MethodPost, p.URL+"/set", nil); err == nil || !strings.Contains(err.Error(), "400") {
		t.Errorf("/set without a name: %v", err)
	}
	if log := p.Log(); !strings.Contains(log, "without __Host- and Secure") {
		t.Errorf("the log does not mention the cookie:\n%s", log)
	}
}

// The page says what its lock is, for each value of -lock.
func TestThePageExplainsTheLock(t *testing.T) {
	t.Parallel()
	for _, lock := range locks {
		page := get(t, newClient(t), demotest.Start(t, "-lock", lock).URL+"/")
		if line := "Lock: " + lock + " (" + lockIs[lock] + ")"; lockIs[lock] == "" || !strings.Contains(html.UnescapeString(page), line) {
			t.Errorf("the page does not say %q", line)
		}
	}
}

// The page compares requests that work for a while, and says for how long: a browser runs only a few at once, and
// without work these would hardly overlap. It says on top that an embedded Redis forgets.
func TestThePageComparesRequestsThatWork(t *testing.T) {
	t.Parallel()
	for _, kind := range []struct {
		demo    *demotest.Demo
		work    time.Duration
		says    string
		forgets bool
	}{
		{demotest.Start(t), pageWork, "100 × 10 ms", true},
		{demotest.Start(t, "-redis", redistest.Real(t).URL, "-work", "30ms"), 30 * time.Millisecond, "100 × 30 ms", false},
	} {
		c := newClient(t)
		for _, way := range []string{"none", "lock"} {
			began := time.Now()
			post(t, c, kind.demo.URL+"/compare/"+way+"/set", "name", "a")
			if took := time.Since(began); took < kind.work {
				t.Errorf("a request %s took %v, want %v", way, took, kind.work)
			}
		}
		page := get(t, c, kind.demo.URL+"/")
		if !strings.Contains(page, kind.says) || strings.Contains(page, `id="forgets"`) != kind.forgets {
			t.Errorf("the page should say %q, and that it forgets: %v\n%s", kind.says, kind.forgets, page)
		}
	}
}
