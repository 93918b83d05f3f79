package browser

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/chromedp/chromedp"
)

// axe finds no barrier for people with disabilities: on each page of the demo, in each state, in both colour
// schemes, on a laptop and on a phone.
func TestAxeFindsNothing(t *testing.T) {
	onEachScreen(t, func(t *testing.T, screen screen) {
		page := demotest.Start(t).URL
		b, other := openDemo(t, page, screen), openDemo(t, page, screen)
		b.axeFindsNothing("the first page")
		b.fire()
		b.axeFindsNothing("after the button")
		b.open(page + "/devices")
		b.axeFindsNothing("signed out")
		other.signIn(page, "ann")
		b.signIn(page, "ann")
		b.axeFindsNothing("signed in")
		b.click("#ask-end-all")
		b.shows("#sure:popover-open")
		b.axeFindsNothing("the question")
		b.do(chromedp.KeyEvent("\x1b")) // Escape
		other.shows(".device:not([data-this])")
		other.endAll()
		b.shows("#over")
		b.axeFindsNothing("ended elsewhere")
		b.open(page)
		b.axeFindsNothing("the first page again")
	})
}

// axe finds no barrier on the page of Sessions.Debug either, empty and full, and the page fits the screen. The
// page has its colours, so the policy permits its style sheet. It refreshes itself without a script.
func TestAxeFindsNothingOnTheDebugPage(t *testing.T) {
	onEachScreen(t, func(t *testing.T, screen screen) {
		w := newWorks(t)
		b := openDemo(t, w.url, screen)
		b.axeFindsNothing("nothing happens")
		w.start()
		b.open(w.url)
		b.axeFindsNothing("much happens")
		b.fits("debug-" + strings.ReplaceAll(screen.name, ", ", "-"))
		for _, text := range []string{"holds", "waits 1", "waits 9", "and 13 more that wait", "in web-2/77", "open"} {
			if !strings.Contains(js[string](b, `document.querySelector('table').innerText`), text) {
				t.Errorf("the page does not show %q", text)
			}
		}
		paper := map[string]string{"light": "rgb(246, 245, 241)", "dark": "rgb(18, 22, 21)"}[screen.scheme]
		if got := js[string](b, `getComputedStyle(document.body).backgroundColor`); got != paper {
			t.Errorf("the page is %s, want %s", got, paper)
		}
		b.open(w.url + "?refresh=3600")
		b.axeFindsNothing("it refreshes itself")
		b.open(w.url + "?refresh=1")
		b.shows("table")
		w.stop()
		b.until(`document.readyState === 'complete' && document.querySelector('table') === null`)
	})
}

func onEachScreen(t *testing.T, test func(t *testing.T, screen screen)) {
	for _, screen := range []screen{{"light", 1280, 800, "light"}, {"dark", 1280, 800, "dark"}, {"phone", 320, 640, "light"}, {"phone, dark", 320, 640, "dark"}} {
		t.Run(screen.name, func(t *testing.T) { test(t, screen) })
	}
}

// axeFindsNothing runs axe on what the tab shows.
func (b *tab) axeFindsNothing(state string) {
	b.t.Helper()
	axe, err := os.ReadFile("../../bin/npm/axe-core-4.10.3.js")
	if err != nil {
		b.t.Fatalf("%v: make e2e gets it", err)
	}
	b.until(`document.getAnimations().length === 0`)
	if _, err := b.eval(string(axe) + "\n''"); err != nil {
		b.t.Fatal(err)
	}
	found := js[[]string](b, `axe.run().then(r => r.violations.map(v => v.id + ': ' + v.help + ': ' + v.nodes.map(n => n.target).join(' ')))`)
	if len(found) > 0 {
		b.t.Errorf("%s: %s", state, strings.Join(found, "; "))
	}
}

// A works is a program whose sessions are busy between start and stop, and the address of its debug page.
type works struct {
	t        *testing.T
	url      string
	site     *httptest.Server
	redis    *redistest.Server
	sessions *middleware.Sessions
	stopped  chan struct{}
	done     chan error // one for each request
	started  int
}

func newWorks(t *testing.T) *works {
	w := &works{t: t, redis: redistest.Embedded(t), stopped: make(chan struct{}), done: make(chan error, 100)}
	var err error
	w.sessions, err = middleware.New(store.New(w.redis.Pool(t, 8), store.Options{}), middleware.Options{
		Keys: [][]byte{bytes.Repeat([]byte("key "), 8)}, Cookie: http.Cookie{Name: "sid"}, LockWait: patience,
		Label:  func(r *http.Request) string { return r.Header.Get("Label") },
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/begin", func(_ http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		s.Set("begun", true)
		s.Login("ann")
	})
	mux.HandleFunc("/id", func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, session.FromContext(r.Context()).ID()) })
	mux.HandleFunc("/work", func(http.ResponseWriter, *http.Request) { <-w.stopped })
	mux.Handle("GET /events/{room}", w.sessions.ReadOnly(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(rw).Flush()
		<-w.stopped
	})))
	w.site = httptest.NewServer(w.sessions.Handler(mux))
	t.Cleanup(w.site.Close)
	debug := http.NewServeMux()
	debug.Handle("GET /debug/sessions", w.sessions.Debug())
	private := httptest.NewServer(debug)
	t.Cleanup(private.Close)
	t.Cleanup(w.stop) // before the servers, which wait for their requests
	w.url = private.URL + "/debug/sessions"
	return w
}

// start makes a queue of 23 requests, a request that waits for a holder in another process, and a stream.
func (w *works) start() {
	w.t.Helper()
	busy := w.visitor()
	w.send(busy, "/work", "POST /order")
	for range 22 {
		w.send(busy, "/work", "GET /cart/{item}")
	}
	elsewhere := w.visitor()
	id := ask(w.t, elsewhere, w.site.URL+"/id")
	tag, own, _ := strings.Cut(id, ".")
	w.redis.Do(w.t, "SET", "latchkey:{"+tag+"}:"+own+".lock", fmt.Sprintf("AAAAAAAAAAAAAAAA %d web-2/77 POST /export", time.Now().UnixMilli()-3200), "PX", 2*patience.Milliseconds())
	w.send(elsewhere, "/work", "<b>any label</b>/"+strings.Repeat("without-a-space/", 7))
	w.send(w.visitor(), "/events/news", "")
}

// visitor returns a visitor who is logged in.
func (w *works) visitor() *http.Client {
	jar, _ := cookiejar.New(nil)
	c := &http.Client{Jar: jar, Transport: &http.Transport{}}
	w.t.Cleanup(c.CloseIdleConnections)
	ask(w.t, c, w.site.URL+"/begin")
	return c
}

// send sends a request, and waits until the debug page can show it.
func (w *works) send(c *http.Client, path, label string) {
	w.t.Helper()
	before := len(slices.Collect(w.sessions.Requests()))
	r, _ := http.NewRequest(http.MethodGet, w.site.URL+path, nil)
	r.Header.Set("Label", label)
	w.started++
	go func() {
		res, err := c.Do(r)
		if err == nil {
			err = res.Body.Close()
		}
		w.done <- err
	}()
	for begun := time.Now(); len(slices.Collect(w.sessions.Requests())) == before; time.Sleep(time.Millisecond) {
		if time.Since(begun) > patience {
			w.t.Fatalf("%s is never at work", path)
		}
	}
}

// stop lets all requests end. It may be called again.
func (w *works) stop() {
	select {
	case <-w.stopped:
		return
	default:
		close(w.stopped)
	}
	w.redis.Do(w.t, "FLUSHALL")
	for range w.started {
		<-w.done
	}
}

func ask(t *testing.T, c *http.Client, url string) string {
	t.Helper()
	res, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(res.Body); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
