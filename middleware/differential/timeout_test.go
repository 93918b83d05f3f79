package differential

import (
	"io"
	"net/http"
	"strings"
	"time"
)

func timeoutCases() []testCase {
	outside := func(d time.Duration) func(*exchange, http.Handler) http.Handler {
		return func(_ *exchange, next http.Handler) http.Handler { return http.TimeoutHandler(next, d, "too slow") }
	}
	inside := func(d time.Duration, h handler) handler {
		return func(x *exchange, w http.ResponseWriter, r *http.Request) {
			http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h(x, w, r) }), d, "too slow").ServeHTTP(w, r)
		}
	}
	// slow does not end before the time is over, and then goes on.
	slow := func(x *exchange, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Slow", "yes")
		io.WriteString(w, "half")
		x.handlers.Add(1)
		defer x.handlers.Done()
		<-r.Context().Done()
	}
	long := func(x *exchange, w http.ResponseWriter, _ *http.Request) { x.write(w, strings.Repeat("x", 100_000)) }
	flushing := func(x *exchange, w http.ResponseWriter, _ *http.Request) {
		_, flusher := w.(http.Flusher)
		x.note("is a Flusher: %t", flusher)
		x.note("flushed, %v", http.NewResponseController(w).Flush())
		io.WriteString(w, "body")
	}
	boom := plain(func(http.ResponseWriter, *http.Request) { panic("boom") })
	const (
		short, ample = 30 * time.Millisecond, time.Minute
		enough       = time.Second // to open the session on a busy machine
	)
	return []testCase{
		{name: "timeout outside: not reached", outside: outside(ample), handler: answering("body", "X-A: 1")},
		{name: "timeout outside: long answer", session: early, outside: outside(ample), handler: long},
		{name: "timeout outside: a body", request: post("body"), outside: outside(ample), handler: echo},
		{name: "timeout outside: panic", outside: outside(ample), handler: boom},
		{name: "timeout outside: a flush", outside: outside(ample), handler: flushing},
		{name: "timeout outside: reached", session: never, outside: outside(enough), handler: slow},
		{name: "timeout inside: not reached", handler: inside(ample, answering("body", "X-A: 1"))},
		{name: "timeout inside: panic", handler: inside(ample, boom)},
		{name: "timeout inside: reached", handler: inside(short, slow)},
		{name: "timeout inside: writes afterwards", handler: inside(short, func(x *exchange, w http.ResponseWriter, r *http.Request) {
			x.handlers.Add(1)
			defer x.handlers.Done()
			<-x.ended
			x.write(w, "too late")
		})},
	}
}
