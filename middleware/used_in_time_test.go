package middleware_test

import (
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
)

// P12: a request takes longer than the idle timeout. Meanwhile another tab comes to
// another process: it waits, keeps its cookie, and finds what the request has saved.
func TestASessionInUseDoesNotRunOut(t *testing.T) {
	t.Parallel()
	const ttl = 500 * time.Millisecond
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		busy, free := pausing(mux)
		o := middleware.Options{TTL: ttl, LockWait: time.Minute}
		here, elsewhere := newSite(t, r.Pool(t, 4), o, mux), newSite(t, r.Pool(t, 4), o, mux)
		v := newVisitor(t)
		v.get(here.URL+"/add").want(t, 200, "1")
		tab := with(t, v.cookies(here)...)
		slow, other := make(chan answer, 1), make(chan answer, 1)
		go func() { slow <- v.get(here.URL + "/pause") }()
		<-busy
		time.Sleep(2 * ttl) // what is tested is that time passes
		go func() { other <- tab.get(elsewhere.URL + "/add") }()
		select {
		case a := <-other:
			t.Errorf("the other tab got its answer, %q, while the session was held", a.body)
			other <- a
		case <-time.After(ttl):
		}
		close(free)
		(<-slow).want(t, 200, "stored")
		a := <-other
		a.want(t, 200, "501")
		if a.sets() {
			t.Error("the other tab got another session")
		}
	})
}

// P12: a request that only reads extends the idle timeout, also where that is the default.
func TestAReadExtendsTheDefaultTimeout(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		readOnly := map[string]middleware.Mode{"/get": middleware.ReadOnly}
		s, v := begun(t, r, middleware.Options{Mode: byPath(readOnly)}, app())
		record, _ := keysOf(v.get(s.URL + "/id").body)
		r.Do(t, "PEXPIRE", record, 60_000)
		v.get(s.URL+"/get").want(t, 200, "1")
		ms, _ := redis.Int64(r.Do(t, "PTTL", record), nil)
		if left := time.Duration(ms) * time.Millisecond; left > store.DefaultTTL || left < store.DefaultTTL-time.Minute {
			t.Errorf("the session is kept for %v, want %v", left, store.DefaultTTL)
		}
	})
}
