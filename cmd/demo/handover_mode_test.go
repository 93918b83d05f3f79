package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
)

// Requests that take the session only to read it wait among those that write, and may be
// handed a state that is not stored yet. They never answer with one that is discarded,
// and agree with requests that read without waiting.
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
			s := newScene(t)
			for range 2 {
				p := redistest.NewProxy(t, s.r)
				s.sites.Add(serveReaders(t, p.URL))
				p.Inject(func(redistest.Command) redistest.Fault { return oneIn(200, fault) })
			}
			v := newVisitor(t, &s.sites)
			v.Reads = []string{"/count", "/count?exclusive", "/count?exclusive"}
			s.play(t, v, func() {
				if fault == redistest.Pass && s.round%3 == 0 {
					s.delete(t, ".lock")
				}
			})
		})
	}
}

// serveReaders serves /reset, /incr and /count; the latter is ReadOnly, or with
// ?exclusive takes the session.
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
		_ = st.Close() // what matters has been checked
	})
	return server.URL
}
