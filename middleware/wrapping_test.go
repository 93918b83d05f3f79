package middleware_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
)

// around serves handlers that are around the sessions, which newSite cannot: its own
// sessions stay out of the way.
func around(t *testing.T, r *redistest.Server, o middleware.Options, wrap func(sessions func(http.Handler) http.Handler) http.Handler) *site {
	t.Helper()
	o.Keys, o.Cookie.Name = [][]byte{testKey}, "sid"
	o.Logger = slog.New(slog.DiscardHandler)
	sessions, err := middleware.New(store.New(r.Pool(t, 4), store.Options{}), o)
	must(t, err)
	none := middleware.Options{Mode: func(*http.Request) middleware.Mode { return middleware.None }}
	return newSite(t, r.Pool(t, 1), none, wrap(sessions.Handler))
}

// A handler that is wrapped twice has one session, and does not wait for itself,
// whatever is between the two.
func TestWrappedTwice(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
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
	inBubble(t, func(t *testing.T, r *redistest.Server) {
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
