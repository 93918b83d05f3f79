package middleware_test

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// P8: Redis falls silent while requests hold the session or wait for it. Whatever they
// do, and wherever they are in line, all are answered within the Timeout and a quarter.
func TestRedisFallsSilentAndAllAreAnsweredInTime(t *testing.T) {
	t.Parallel()
	const timeout = 400 * time.Millisecond
	const limit = timeout*5/4 + 100*time.Millisecond // which is for the machine
	for name, paths := range map[string][]string{
		"one":                            {"/add"},
		"one that reads":                 {"/get"},
		"a login":                        {"/login"},
		"a logout":                       {"/logout"},
		"a panic":                        {"/panic"},
		"a crowd":                        {"/add", "/add", "/add", "/add", "/add"},
		"a crowd of readers":             {"/get", "/get", "/get", "/get", "/get"},
		"a login last in a crowd":        {"/add", "/add", "/add", "/login"},
		"a panic last in a crowd":        {"/add", "/add", "/add", "/panic"},
		"a panic amid a crowd":           {"/add", "/add", "/panic", "/add", "/add"},
		"one too large, last in a crowd": {"/add", "/add", "/large"},
		"a slow one amid a crowd":        {"/add", "/slow", "/add", "/add", "/add"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := redistest.Real(t)
			c := newSilentSite(t, r, timeout)
			answers := c.line(t, paths)
			c.silence(t, r)
			c.check(t, answers, limit)
			r.Resume(t)
			eventually(t, "all is well again", func() bool { return c.v.get(c.URL+"/nothing").StatusCode == 200 })
		})
	}
}

// A silentSite is one whose Redis falls silent while the first request of a line is in
// its handler.
type silentSite struct {
	*site
	st   *store.Store
	v    *visitor
	id   string
	busy chan struct{} // closed when the first request holds the session
	free chan struct{} // to be closed when its handler may go on

	began time.Time            // of the silence
	delay func() time.Duration // how late this machine woke somebody up meanwhile
}

// maxBytes is a limit that /large exceeds.
const maxBytes = 4 << 10

func newSilentSite(t *testing.T, r *redistest.Server, timeout time.Duration) *silentSite {
	t.Helper()
	c := &silentSite{
		st:   store.New(r.Pool(t, 8), store.Options{Lease: 5 * time.Second, Timeout: timeout}),
		v:    newVisitor(t),
		busy: make(chan struct{}),
		free: make(chan struct{}),
	}
	mux := app()
	mux.HandleFunc("/panic", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	mux.HandleFunc("/large", func(_ http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Set("large", make([]byte, maxBytes))
	})
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) {
		time.Sleep(30 * time.Millisecond) // longer than requests run ahead of Redis
		session.FromContext(r.Context()).Set("slow", 1)
	})
	first := sync.OnceFunc(func() {
		close(c.busy)
		<-c.free
	})
	all := http.NewServeMux()
	all.Handle("/", mux)
	all.HandleFunc("/first/{path}", func(w http.ResponseWriter, r *http.Request) {
		first()
		http.StripPrefix("/first", mux).ServeHTTP(w, r)
	})
	c.site = newSiteOn(t, c.st, middleware.Options{LockWait: time.Minute, MaxBytes: maxBytes}, all)
	c.v.get(c.URL+"/add").want(t, 200, "1")
	c.id = c.v.get(c.URL + "/id").body
	return c
}

// A timed is an answer and when it came.
type timed struct {
	path string
	answer
	at time.Time
}

// line sends a request for each path, one behind another. The first is in its handler
// when line returns.
func (c *silentSite) line(t *testing.T, paths []string) chan timed {
	t.Helper()
	answers := make(chan timed, len(paths))
	for i, path := range paths {
		url := c.URL + path
		if i == 0 {
			url = c.URL + "/first" + path
		}
		go func() {
			a := c.v.post(url)
			answers <- timed{fmt.Sprint(i+1, " ", path), a, time.Now()}
		}()
		if i == 0 {
			<-c.busy
			continue
		}
		eventually(t, "it waits in line", func() bool {
			terms := store.Terms{LockWait: locker.NoWait, MaxWaiters: i}
			_, err := c.st.Take(t.Context(), c.id, terms)
			return errors.Is(err, store.ErrTooManyWaiters)
		})
	}
	return answers
}

// silence freezes Redis and lets the handler of the first request go on.
func (c *silentSite) silence(t *testing.T, r *redistest.Server) {
	t.Helper()
	r.Pause(t)
	c.delay = watchMachine()
	c.began = time.Now()
	close(c.free)
}

// check checks that no request is answered as if it were saved, or later than limit.
func (c *silentSite) check(t *testing.T, answers chan timed, limit time.Duration) {
	t.Helper()
	var all []timed
	for range cap(answers) {
		all = append(all, <-answers)
	}
	delay := c.delay()
	for _, a := range all {
		if took := a.at.Sub(c.began); took > limit+3*delay { // some timers follow one another
			t.Errorf("request %s was answered %v after Redis fell silent, want %v at most, and the machine was %v late",
				a.path, took.Round(time.Millisecond), limit, delay)
		}
		if a.err == nil && a.StatusCode < 400 {
			t.Errorf("request %s: %d, though Redis is silent", a.path, a.StatusCode)
		}
	}
}

// watchMachine watches how late the machine wakes up a goroutine that sleeps, until the function
// that it returns is called, which returns the longest delay.
func watchMachine() (stop func() time.Duration) {
	done, longest := make(chan struct{}), make(chan time.Duration)
	go func() {
		const nap = 5 * time.Millisecond
		var most time.Duration
		for {
			began := time.Now()
			select {
			case <-time.After(nap):
				most = max(most, time.Since(began)-nap)
			case <-done:
				longest <- most
				return
			}
		}
	}()
	return func() time.Duration {
		close(done)
		return <-longest
	}
}
