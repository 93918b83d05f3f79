// Package prometheus tests what Prometheus and Grafana make of the metrics of middleware/otel.
package prometheus

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	otellatchkey "github.com/a2139e8d/latchkey/middleware/otel"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/embedded"
	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
)

// A site has sessions, and what Prometheus scrapes at /metrics.
type site struct {
	*httptest.Server
	scraped  http.Handler
	observer middleware.Observer

	stuck chan struct{} // a request holds its session, until free is called
	free  chan struct{}
}

func newSite(t *testing.T) *site {
	t.Helper()
	registry := client.NewRegistry()
	exporter, err := prometheus.New(prometheus.WithRegisterer(registry), prometheus.WithoutScopeInfo())
	if err != nil {
		t.Fatal(err)
	}
	observer := otellatchkey.New(otellatchkey.Options{MeterProvider: metric.NewMeterProvider(metric.WithReader(exporter))})
	st, err := embedded.Open(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	sessions, err := middleware.New(st, middleware.Options{
		Keys:      [][]byte{[]byte(rand.Text() + rand.Text())},
		Cookie:    http.Cookie{Name: "session"},
		Mode:      middleware.ByMethod,
		LockWait:  300 * time.Millisecond,
		Observers: []middleware.Observer{observer},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{scraped: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), observer: observer,
		stuck: make(chan struct{}), free: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /page/{name}", func(_ http.ResponseWriter, r *http.Request) { session.FromContext(r.Context()).Keys() })
	mux.HandleFunc("POST /add", func(_ http.ResponseWriter, r *http.Request) {
		n, _ := session.Get[int](session.FromContext(r.Context()), "n")
		session.FromContext(r.Context()).Set("n", n+1)
	})
	mux.HandleFunc("POST /slow", func(_ http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Set("slow", true)
		time.Sleep(50 * time.Millisecond) // the work
	})
	mux.HandleFunc("POST /stuck", func(_ http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Set("stuck", true)
		s.stuck <- struct{}{}
		<-s.free
	})
	mux.HandleFunc("POST /login", func(_ http.ResponseWriter, r *http.Request) { session.FromContext(r.Context()).Login("ann") })
	mux.HandleFunc("POST /logout", func(_ http.ResponseWriter, r *http.Request) { session.FromContext(r.Context()).Destroy() })
	root := http.NewServeMux()
	root.Handle("GET /metrics", s.scraped)
	root.Handle("/", sessions.Handler(mux))
	s.Server = httptest.NewServer(root)
	t.Cleanup(s.Close)
	return s
}

// visit is what one visitor does: pages, writes at once, a wait that is too long, a login, a logout, and one more
// request with the cookie of the session that has ended.
func (s *site) visit() {
	jar, _ := cookiejar.New(nil)
	c := &http.Client{Jar: jar}
	send := func(method, path string, cookies ...*http.Cookie) {
		r, _ := http.NewRequest(method, s.URL+path, nil)
		for _, cookie := range cookies {
			r.AddCookie(cookie)
		}
		if res, err := c.Do(r); err == nil {
			_ = res.Body.Close()
		}
	}
	send("POST", "/add")
	var at sync.WaitGroup
	for range 4 {
		at.Go(func() { send("POST", "/add") })
		at.Go(func() { send("POST", "/slow") })
	}
	at.Wait()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		send("POST", "/stuck")
	}()
	select {
	case <-s.stuck:
		for range 3 {
			at.Go(func() { send("POST", "/add") })
		}
		at.Wait()
		s.free <- struct{}{}
		<-answered
	case <-answered: // on a busy machine its own wait may be too long, which also counts
	}
	send("GET", "/page/cart")
	send("POST", "/login")
	home, _ := url.Parse(s.URL)
	ended := jar.Cookies(home)
	send("POST", "/logout")
	c.Jar = nil
	send("GET", "/page/cart", ended...)
}

// text returns what Prometheus scrapes.
func (s *site) text() string {
	w := httptest.NewRecorder()
	s.scraped.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

// tellRareEvents tells the observer of events that need a cluster, a fault, or luck.
func (s *site) tellRareEvents() {
	for _, e := range []middleware.Event{
		&middleware.ExchangeEvent{Script: "take", Command: "EVALSHA", Commands: 1, Node: "node-1:7000", Moved: 1, Took: time.Millisecond},
		&middleware.ExchangeEvent{Command: "GET", Commands: 1, Node: "node-1:7000", Status: "OOM", Took: time.Millisecond},
		&middleware.SessionEvent{What: "extended", Err: context.DeadlineExceeded},
		&middleware.RequestEvent{Waited: time.Second, Outcome: "failed", Err: store.ErrTimeout, Kind: "timeout"},
	} {
		s.observer.Observe(context.Background(), e)
	}
}
