package browser

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A watch sees a site's requests and responses, and can stop them.
type watch struct {
	t      *testing.T
	closed context.Context // ends with the test, so that all stopped requests go on

	losesLogins atomic.Bool // the responses of logins are lost

	mu      sync.Mutex
	stops   map[string]*stop
	answers []string
	active  map[net.Conn]bool // connections with a request that has no response yet
	cuts    int               // how many of these were closed
}

func newWatch(t *testing.T) *watch {
	return &watch{t: t, closed: t.Context(), stops: map[string]*stop{}, active: map[net.Conn]bool{}}
}

// observe records each response of next, and whether it sets the cookie.
func (w *watch) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.reached(r, "before the sessions")
		noting := &noting{ResponseWriter: rw}
		whole := false
		defer func() {
			answer := fmt.Sprintf("%s %s: %d", r.Method, r.URL.Path, cmp.Or(noting.status, http.StatusOK))
			if !whole {
				answer = fmt.Sprintf("%s %s: cut off", r.Method, r.URL.Path)
			}
			if len(rw.Header()["Set-Cookie"]) > 0 {
				answer += " and a cookie"
			}
			w.note(answer)
			w.reached(r, "after the sessions")
		}()
		next.ServeHTTP(noting, r)
		if w.losesLogins.Load() && r.URL.Path == "/login" {
			panic(http.ErrAbortHandler)
		}
		whole = true
	})
}

// noting keeps the status of a response.
type noting struct {
	http.ResponseWriter
	status int
}

func (n *noting) WriteHeader(status int) {
	n.status = cmp.Or(n.status, status)
	n.ResponseWriter.WriteHeader(status)
}

func (n *noting) Unwrap() http.ResponseWriter { return n.ResponseWriter }

func (w *watch) note(answer string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// The browser requests these by itself.
	if !strings.Contains(answer, "/favicon.ico") && !strings.Contains(answer, "/worker.js") {
		w.answers = append(w.answers, answer)
	}
}

// answered checks which responses were sent since its last call, in any order.
func (w *watch) answered(want ...string) {
	w.t.Helper()
	got := slices.Sorted(slices.Values(w.forgetAnswers()))
	slices.Sort(want)
	if !slices.Equal(got, want) {
		w.t.Errorf("the answers were\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// neverAnswered checks that no response had that status.
func (w *watch) neverAnswered(status string) {
	w.t.Helper()
	got := w.forgetAnswers()
	if len(got) == 0 || strings.Contains(strings.Join(got, "\n"), ": "+status) {
		w.t.Errorf("the answers were\n\t%s", strings.Join(got, "\n\t"))
	}
}

// forgetAnswers returns the responses since its last call.
func (w *watch) forgetAnswers() (answers []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	answers, w.answers = w.answers, nil
	return answers
}

// connection is an http.Server.ConnState.
func (w *watch) connection(c net.Conn, state http.ConnState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if state == http.StateClosed && w.active[c] {
		w.cuts++
	}
	w.active[c] = state == http.StateActive
}

// cut checks how many connections ended before their response.
func (w *watch) cut(want int) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cuts != want {
		w.t.Errorf("%d connections were cut off, want %d", w.cuts, want)
	}
}

// A stop is a place where requests wait until the test lets them go.
type stop struct {
	t       *testing.T
	arrived chan *http.Request
	release chan struct{} // a token for each request
}

// stop makes the requests of one kind, such as "POST /login", wait at a place.
func (w *watch) stop(request, place string) *stop {
	s := &stop{w.t, make(chan *http.Request, 100), make(chan struct{}, 100)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stops[request+" "+place] = s
	return s
}

// noStop lets the requests that come from now on pass.
func (w *watch) noStop(request, place string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.stops, request+" "+place)
}

// reached is called at each place that a request reaches.
func (w *watch) reached(r *http.Request, place string) {
	w.mu.Lock()
	s := w.stops[r.Method+" "+r.URL.Path+" "+place]
	w.mu.Unlock()
	if s == nil {
		return
	}
	s.arrived <- r
	select {
	case <-s.release:
	case <-w.closed.Done():
	}
}

// wait returns the next request that waits at the stop.
func (s *stop) wait() *http.Request {
	s.t.Helper()
	return receive(s.t, s.arrived, "a request")
}

// letGo lets one request go on: the one that waits, or the next one.
func (s *stop) letGo() { s.release <- struct{}{} }

// hungUp waits until the browser has cancelled a request.
func hungUp(t *testing.T, r *http.Request) {
	t.Helper()
	receive(t, r.Context().Done(), "the end of a connection")
}

func receive[T any](t *testing.T, from <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(patience):
		t.Fatalf("%s never came", what)
	}
	return v
}
