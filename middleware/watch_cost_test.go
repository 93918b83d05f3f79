package middleware_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// P16: A request costs nothing more if it is over within a second. A request without a session costs nothing more,
// however long it takes. After its first second, any other request costs one exchange a second.
func TestWhatWatchingCosts(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		p := redistest.NewProxy(t, r)
		mux := app()
		mux.HandleFunc("/take/{time}", func(_ http.ResponseWriter, r *http.Request) {
			d, err := time.ParseDuration(r.PathValue("time"))
			must(t, err)
			redistest.Elapse(d)
		})
		s := newSite(t, p.Pool(t, 4), middleware.Options{}, mux)
		v := s.visitor(t)
		count := func(v *visitor, d string) int {
			p.Forget()
			v.get(s.URL+"/take/"+d).want(t, 200, "")
			return p.RoundTrips()
		}
		for range 2 { // Redis and the store know each other then
			count(v, "0s")
		}
		at0 := count(v, "0s")
		if short := count(v, "999ms"); short != at0 {
			t.Errorf("%d round trips of a request of 999 ms, and %d of one of no time", short, at0)
		}
		if long := count(v, "9s"); long < at0+8 || long > at0+9+3 { // the lease is renewed meanwhile
			t.Errorf("%d round trips in 9 s, and %d of a request of no time", long, at0)
		}
		if none := count(newVisitor(t), "9s"); none != 0 {
			t.Errorf("%d round trips of a request without a session", none)
		}
	})
}

// Many requests come and go while sessions end. Each context ends, or its request returns before.
func TestManyRequestsAreWatchedAtOnce(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	stays := newStays()
	s := siteWith(t, r, middleware.Options{}, "/stay", func(own *session.Session, w http.ResponseWriter, req *http.Request) {
		must(t, own.Commit(req.Context()))
		stays.begun <- own.ID()
		<-req.Context().Done()
		if cause := context.Cause(req.Context()); cause != session.ErrEnded {
			t.Errorf("the cause is %v", cause)
		}
	})
	const visitors = 150
	var all sync.WaitGroup
	for range visitors {
		all.Go(func() {
			v := s.visitor(t)
			stay := v.start(s.URL + "/stay")
			must(t, s.sessions.End(t.Context(), <-stays.begun)) // anybody's
			for range 20 {
				// A request that follows another one in line, and whose session ends meanwhile, is answered with 409.
				if a := v.get(s.URL + "/get"); a.err != nil || a.StatusCode != 200 && a.StatusCode != 409 {
					t.Errorf("answer is %d %q, error %v", a.StatusCode, a.body, a.err)
				}
			}
			<-stay
		})
	}
	all.Wait()
}
