package middleware_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
)

// A websocket library that finds a Hijacker sends its 101, and cannot take that back. So there
// is one only where the connection can be taken over.
func TestTheWriterIsAHijackerWhereTheConnectionCanBeTakenOver(t *testing.T) {
	t.Parallel()
	asks := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, ok := w.(http.Hijacker); !ok {
			w.WriteHeader(http.StatusNotImplemented)
		}
	})
	for name, test := range map[string]struct {
		wrap func(http.Handler) http.Handler
		want int
	}{
		"net/http":                {func(h http.Handler) http.Handler { return h }, 200},
		"inside a TimeoutHandler": {func(h http.Handler) http.Handler { return http.TimeoutHandler(h, time.Minute, "") }, 501},
	} {
		s := around(t, redistest.Embedded(t), middleware.Options{}, func(sessions func(http.Handler) http.Handler) http.Handler {
			return test.wrap(sessions(asks))
		})
		if got := newVisitor(t).get(s.URL).StatusCode; got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}
