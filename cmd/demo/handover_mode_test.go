package main

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/testdata/redistest"
)

// Requests that read and take the session for it are in the same line as those that
// write, and may be handed a state that is not stored yet. They never answer with
// one that comes to nothing, and agree with those that read without waiting.
func TestHandOverHistoriesOfReaders(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]redistest.Fault{
		"no faults":          redistest.Pass,
		"replies are lost":   redistest.DropReply,
		"commands are lost":  redistest.DropCommand,
		"replies never come": redistest.Hang,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := redistest.Real(t)
			var urls []string
			var bad atomic.Bool // once there is a session
			for range 2 {
				p := redistest.NewProxy(t, r)
				p.Inject(func(redistest.Command) redistest.Fault {
					if bad.Load() && rand.IntN(200) == 0 {
						return fault
					}
					return redistest.Pass
				})
				urls = append(urls, serveReaders(t, p.URL))
			}
			s := &scene{r: r, h: newCounterHistory(t, urls...)}
			bad.Store(true)
			s.h.reads = []string{"/count", "/count?exclusive", "/count?exclusive"}
			s.play(t, func() {
				if fault == redistest.Pass && s.round%3 == 0 {
					s.delete(t, ".lock")
				}
			})
			s.h.check()
		})
	}
}

// serveReaders serves /reset, /incr and /count, the last of them in both modes.
func serveReaders(t *testing.T, redisURL string) (url string) {
	st, err := store.Open(redisURL, store.Options{Lease: time.Second, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	sessions, err := middleware.New(st, middleware.Options{
		Keys:   [][]byte{[]byte(strings.Repeat("k", 32))},
		Cookie: http.Cookie{Name: "session"},
		OnError: func(w http.ResponseWriter, _ *http.Request, err error) {
			w.WriteHeader(middleware.Status(err))
		},
		Mode: func(r *http.Request) middleware.Mode {
			if r.Method == http.MethodGet && !r.URL.Query().Has("exclusive") {
				return middleware.ReadOnly
			}
			return middleware.Exclusive
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /reset", reset)
	mux.HandleFunc("POST /incr", incr)
	mux.HandleFunc("GET /count", count)
	server := httptest.NewServer(sessions.Handler(mux))
	t.Cleanup(func() {
		server.Close()
		_ = st.Close() // what it was used for has been checked
	})
	return server.URL
}
