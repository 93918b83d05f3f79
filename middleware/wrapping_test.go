package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// around serves handlers that are around the sessions, which newSite cannot: its own
// sessions stay out of the way.
func around(t *testing.T, r *redistest.Server, o middleware.Options, wrap func(sessions func(http.Handler) http.Handler) http.Handler) *site {
	t.Helper()
	o.Keys, o.Cookie.Name = [][]byte{testKey}, "sid"
	o.Logger = slog.New(slog.DiscardHandler)
	sessions, err := middleware.New(store.New(r.Pool(t, 4), store.Options{}), o)
	if err != nil {
		t.Fatal(err)
	}
	none := middleware.Options{Mode: func(*http.Request) middleware.Mode { return middleware.None }}
	return newSite(t, r.Pool(t, 1), none, wrap(sessions.Handler))
}

// A handler that is wrapped twice has one session, and does not wait for itself,
// whatever is between the two.
func TestWrappedTwice(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		s := around(t, r, middleware.Options{LockWait: 100 * time.Millisecond}, func(sessions func(http.Handler) http.Handler) http.Handler {
			return sessions(http.TimeoutHandler(sessions(app()), time.Minute, "too slow"))
		})
		v := newVisitor(t)
		v.get(s.URL+"/add").want(t, 200, "1")
		v.get(s.URL+"/add").want(t, 200, "2")
	})
}

// Whatever cause an outer handler gives for the end of a wait, it counts as the end of
// a wait.
func TestAContextThatEndsWithACauseOfItsOwn(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		busy, free := holding(mux)
		s := around(t, r, middleware.Options{}, func(sessions func(http.Handler) http.Handler) http.Handler {
			inner := sessions(mux)
			return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if req.URL.Path == "/add" && req.URL.RawQuery != "" {
					ctx, cancel := context.WithTimeoutCause(req.Context(), 20*time.Millisecond, errors.New("our own cause"))
					defer cancel()
					req = req.WithContext(ctx)
				}
				inner.ServeHTTP(w, req)
			})
		})
		v := newVisitor(t)
		v.get(s.URL+"/add").want(t, 200, "1")
		done := v.start(s.URL + "/hold")
		<-busy
		v.get(s.URL+"/add?impatient").want(t, 503, "*")
		close(free)
		(<-done).want(t, 200, "")
	})
}

// What the handler puts into the header after the answer was replaced never shows,
// whenever the writer around looks.
func TestHeadersAfterAFailedCommitAreIgnored(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		mux.HandleFunc("/lose", func(w http.ResponseWriter, req *http.Request) {
			loseLock(t, r, req)
			session.FromContext(req.Context()).Set("n", 9)
			fmt.Fprint(w, strings.Repeat("x", 100_000))
			w.Header().Set("X-Handler", "yes")
		})
		s := around(t, r, middleware.Options{}, func(sessions func(http.Handler) http.Handler) http.Handler {
			return http.TimeoutHandler(sessions(mux), time.Minute, "too slow")
		})
		v := newVisitor(t)
		v.get(s.URL+"/add").want(t, 200, "1")
		a := v.get(s.URL + "/lose")
		a.want(t, 503, "*")
		if a.Header.Get("X-Handler") != "" {
			t.Errorf("%v", a.Header)
		}
	})
}

// The answer of a handler that read the session varies by cookie, even if it read it
// after the commit.
func TestVaryAfterAnEarlyCommit(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		handle(mux, "/early", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
			if err := s.Commit(req.Context()); err != nil {
				t.Error(err)
			}
			n, _ := session.Get[int](s, "n")
			fmt.Fprint(w, n)
		})
		s, v := begun(t, r, middleware.Options{}, mux)
		if a := v.get(s.URL + "/early"); a.Header.Get("Vary") != "Cookie" {
			t.Errorf("%v", a.Header)
		}
		if a := v.get(s.URL + "/nothing"); a.Header.Get("Vary") != "" {
			t.Errorf("an answer that has nothing to do with the session: %v", a.Header)
		}
	})
}
