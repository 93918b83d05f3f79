package faults

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
)

// A site is like the demo, but inside the test: for faults that need a separate pool, or options for
// which the demo has no flags.
type site struct {
	*http.ServeMux
	URL   string
	store *store.Store
}

// newSite starts a site on a pool. Its cookies are valid in the demos, too.
func newSite(t *testing.T, pool *redis.Pool, of store.Options, with middleware.Options) *site {
	t.Helper()
	h := &site{ServeMux: http.NewServeMux(), store: store.New(pool, of)}
	key, err := hex.DecodeString(demotest.Key)
	if err != nil {
		t.Fatal(err)
	}
	with.Keys = [][]byte{key}
	with.Cookie = http.Cookie{Name: "latchkey-demo"}
	with.Logger = slog.New(slog.DiscardHandler)
	with.Mode = func(r *http.Request) middleware.Mode {
		if r.Method == http.MethodGet {
			return middleware.ReadOnly
		}
		return middleware.Exclusive
	}
	sessions, err := middleware.New(h.store, with)
	if err != nil {
		t.Fatal(err)
	}
	h.HandleFunc("POST /reset", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Set("since", "now")
		w.WriteHeader(http.StatusNoContent)
	})
	h.HandleFunc("POST /set", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Set("param_"+r.PostFormValue("name"), 1)
		fmt.Fprintln(w, "ok")
	})
	h.HandleFunc("GET /params", func(w http.ResponseWriter, r *http.Request) {
		names := []string{}
		for key := range session.FromContext(r.Context()).Keys() {
			if name, ok := strings.CutPrefix(key, "param_"); ok {
				names = append(names, name)
			}
		}
		_ = json.NewEncoder(w).Encode(names)
	})
	server := httptest.NewServer(sessions.Handler(h))
	t.Cleanup(server.Close)
	h.URL = server.URL
	return h
}

// at returns the URL for all users.
func (h *site) at(float64) string { return h.URL }

// poolOf returns a pool of at most size connections, closed when the test ends.
func poolOf(t *testing.T, addr string, size int) *redis.Pool {
	options := []redis.DialOption{redis.DialConnectTimeout(timeout), redis.DialReadTimeout(timeout), redis.DialWriteTimeout(timeout)}
	pool := &redis.Pool{MaxActive: size, MaxIdle: size, Wait: true,
		Dial: func() (redis.Conn, error) { return redis.Dial("tcp", addr, options...) }}
	t.Cleanup(func() { pool.Close() })
	return pool
}
