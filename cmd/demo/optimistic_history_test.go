package main

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
)

// Most requests are optimistic, increments, logins and logouts as well as reads, and the others
// are exclusive: in two processes, over networks that lose commands and replies, and where locks are
// deleted. Every answer is right, and every answered write is kept. Where nothing is wrong, all are
// answered: no optimistic request costs a holder its lock.
func TestOptimisticHistories(t *testing.T) {
	t.Parallel()
	var again atomic.Int64
	t.Cleanup(func() {
		if again.Load() == 0 {
			t.Error("no handler ran a second time")
		}
		t.Logf("%d handlers ran a second time", again.Load())
	})
	for name, fault := range map[string]redistest.Fault{
		"nothing":             redistest.Pass,
		"locks are deleted":   redistest.Pass,
		"replies are lost":    redistest.DropReply,
		"commands are lost":   redistest.DropCommand,
		"replies never come":  redistest.Hang,
		"commands never come": redistest.HangCommand,
	} {
		for with, clients := range map[string]int{"": 20, ", with logins": 5} { // more would cost the checker minutes
			t.Run(name+with, func(t *testing.T) {
				t.Parallel()
				timeout := 300 * time.Millisecond // much less than the play lasts
				if name == "nothing" {
					timeout = 20 * time.Second
				}
				s := newScene(t)
				for range 2 {
					p := redistest.NewProxy(t, s.r)
					s.sites.Add(serveOptimistic(t, p.URL, timeout, &again))
					p.Inject(func(redistest.Command) redistest.Fault { return oneIn(200, fault) })
				}
				v := newVisitor(t, &s.sites)
				v.Logins = with != ""
				s.playWith(t, v, clients, func() {
					if name == "locks are deleted" {
						s.delete(t, ".lock")
					}
				})
				if n := v.Summary().Silent; n > 0 && name == "nothing" {
					t.Errorf("%d requests were not answered", n)
				}
			})
		}
	}
}

// serveOptimistic serves the demo's counter, and makes most requests GETs, which are optimistic. It
// counts the handlers that run a second time.
func serveOptimistic(t *testing.T, redisURL string, timeout time.Duration, again *atomic.Int64) (url string) {
	st, err := store.Open(redisURL, store.Options{Lease: time.Second, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	sessions, err := middleware.New(st, middleware.Options{
		Keys:    [][]byte{[]byte(strings.Repeat("k", 32))},
		Cookie:  http.Cookie{Name: "session"},
		OnError: func(w http.ResponseWriter, _ *http.Request, err error) { w.WriteHeader(middleware.Status(err)) },
		Mode: func(r *http.Request) middleware.Mode {
			if r.Method == http.MethodGet {
				return middleware.Optimistic
			}
			return middleware.Exclusive
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for pattern, handler := range map[string]http.HandlerFunc{
		"/reset": reset, "/incr": incr, "/count": count, "/login": login, "/logout": logout,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if runs := r.Context().Value(runsKey{}).(*int); *runs == 0 {
				*runs++
			} else {
				again.Add(1)
			}
			handler(w, r)
		})
	}
	locked := sessions.Handler(mux)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(context.WithValue(r.Context(), runsKey{}, new(int)))
		if r.Method = http.MethodGet; rand.IntN(5) == 0 {
			r.Method = http.MethodPost
		}
		locked.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.Close()
		_ = st.Close() // what matters has been checked
	})
	return server.URL
}

// runsKey is that of how often a request's handler has run.
type runsKey struct{}
