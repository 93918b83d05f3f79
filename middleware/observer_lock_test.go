package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// eventOf returns the event of the only request to a route.
func eventOf(t *testing.T, w *witness, route string) *middleware.RequestEvent {
	t.Helper()
	all := slices.DeleteFunc(requestsIn(w.takeAll()), func(e *middleware.RequestEvent) bool { return e.Route != route })
	if len(all) != 1 {
		t.Fatalf("%d events of %s", len(all), route)
	}
	return all[0]
}

// The event of a request that has waited says behind which request, how long, and how many requests were before it.
func TestAWaitIsObserved(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w := &witness{}
		o := middleware.Options{Observers: []middleware.Observer{w}, LockWait: 3 * time.Second}
		s, v := begun(t, r, o, app())
		w.takeAll()
		free := v.hold(s.URL + "/pause")
		first := v.start(s.URL + "/add")
		time.Sleep(time.Second)
		synctest.Wait()
		second := v.start(s.URL + "/add")
		time.Sleep(time.Second)
		synctest.Wait()
		free().want(t, 200, "stored")
		(<-first).want(t, 200, "501")
		(<-second).want(t, 200, "502")
		all := requestsIn(w.takeAll())
		if len(all) != 3 {
			t.Fatalf("%d events", len(all))
		}
		slices.SortFunc(all, func(a, b *middleware.RequestEvent) int { return a.Arrived.Compare(b.Arrived) })
		for i, want := range []struct {
			waited, held time.Duration
			queue        int
			behind       string
			passed       bool
		}{{0, 2 * time.Second, 0, "", false}, {2 * time.Second, 0, 0, "GET /pause", false}, {time.Second, 0, 1, "GET /pause", true}} {
			e := all[i]
			if e.Waited != want.waited || e.Held != want.held || e.Queue != want.queue || e.Behind != want.behind || e.Passed != want.passed || e.BehindProcess != "" {
				t.Errorf("request %d: waited %v, held %v, %d before it, behind %q, passed %v; want %+v", i, e.Waited, e.Held, e.Queue, e.Behind, e.Passed, want)
			}
			if e.Acquired.Sub(e.Arrived) != want.waited || e.Done.Before(e.Committed) || e.Committed.Before(e.Acquired) {
				t.Errorf("request %d: its times are %v, %v, %v, %v", i, e.Arrived, e.Acquired, e.Committed, e.Done)
			}
		}
		// A wait in vain.
		free = v.hold(s.URL + "/pause")
		v.get(s.URL+"/add").want(t, 503, "*")
		e := w.one(t)
		if e.Kind != "timeout" || e.Outcome != "failed" || !errors.Is(e.Err, store.ErrTimeout) || e.Waited != 3*time.Second || !e.Acquired.IsZero() {
			t.Errorf("%+v", e)
		}
		if h := e.Holds; len(h) != 1 || !h[0].Acquired.IsZero() || h[0].Released.Sub(h[0].Asked) != e.Waited || h[0].Behind != "GET /pause" || h[0].Kind != "timeout" {
			t.Errorf("its holds are %+v", h)
		}
		free()
	})
}

// A far client's round trips take a second.
type far struct{ transport.Client }

func (c far) Do(ctx context.Context, key string, commands ...transport.Command) ([]any, error) {
	time.Sleep(time.Second)
	return c.Client.Do(ctx, key, commands...)
}

// If a request comes while another one is acquiring the session, its event says that it has waited behind that one.
func TestAWaitBehindWhoeverAcquiresTheSession(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w, mux := &witness{}, app()
		handle(mux, "/slowly/add", func(s *session.Session, w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, add(s)) })
		st := store.NewOn(far{transport.NewRedigo(r.Pool(t, 4), 5*time.Second)}, steady)
		s := newSiteOn(t, st, middleware.Options{Observers: []middleware.Observer{w}}, mux)
		v := s.visitor(t)
		w.takeAll()
		first := v.start(s.URL + "/slowly/add")
		synctest.Wait() // until it waits for Redis
		second := v.start(s.URL + "/add")
		(<-first).want(t, 200, "2")
		(<-second).want(t, 200, "3")
		if e := eventOf(t, w, "/add"); e.Behind != "GET /slowly/add" || e.Queue != 1 {
			t.Errorf("it waited behind %q, and %d were before it", e.Behind, e.Queue)
		}
	})
}

// Requests come to a process at once, while another process has their session. Only the first of them asks Redis for the
// lock. Redis's reply says who has it. So all of them have waited behind that holder, and not behind the first.
func TestRequestsThatComeAtOnceWaitBehindTheHolderElsewhere(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w := &witness{}
		elsewhere := newSite(t, r.Pool(t, 4), middleware.Options{}, app())
		st := store.NewOn(far{transport.NewRedigo(r.Pool(t, 4), 5*time.Second)}, steady)
		s := newSiteOn(t, st, middleware.Options{Observers: []middleware.Observer{w}}, app())
		v := newVisitor(t).everywhere()
		v.get(elsewhere.URL+"/add").want(t, 200, "1")
		free := v.hold(elsewhere.URL + "/pause")
		var all []<-chan answer
		for range 3 {
			all = append(all, v.start(s.URL+"/add"))
			synctest.Wait() // until it waits for Redis, or for the first
		}
		time.Sleep(3 * time.Second)
		free().want(t, 200, "stored")
		for _, done := range all {
			<-done
		}
		events := requestsIn(w.takeAll())
		if len(events) != 3 {
			t.Fatalf("%d events", len(events))
		}
		for _, e := range events {
			if e.Behind != "GET /pause" {
				t.Errorf("a request with %d before it has waited behind %q", e.Queue, e.Behind)
			}
		}
	})
}

// Requests wait behind the one that is acquiring the session when they come, even if another process has it after that.
func TestAWaitBehindTheFirstOfTwoHolders(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w, mux := &witness{}, app()
		handle(mux, "/first", func(_ *session.Session, _ http.ResponseWriter, r *http.Request) { waitUntilFree(r) })
		elsewhere := newSite(t, r.Pool(t, 4), middleware.Options{}, app())
		st := store.NewOn(far{transport.NewRedigo(r.Pool(t, 4), 5*time.Second)}, steady)
		s := newSiteOn(t, st, middleware.Options{Observers: []middleware.Observer{w}, LockWait: time.Minute}, mux)
		v := newVisitor(t).everywhere()
		v.get(elsewhere.URL+"/add").want(t, 200, "1")
		freeFirst := make(chan func() answer)
		go func() { freeFirst <- v.hold(s.URL + "/first") }()
		synctest.Wait() // until it waits for Redis
		second, third := v.start(s.URL+"/add"), v.start(s.URL+"/add")
		free := <-freeFirst
		freeNext := make(chan func() answer)
		go func() { freeNext <- v.hold(elsewhere.URL + "/pause") }()
		time.Sleep(3 * time.Second) // that is in Redis's queue, and the first has had the lock for long enough
		free().want(t, 200, "")
		next := <-freeNext
		time.Sleep(3 * time.Second) // the second has asked Redis
		next().want(t, 200, "stored")
		(<-second).want(t, 200, "*")
		(<-third).want(t, 200, "*")
		for _, e := range requestsIn(w.takeAll()) {
			if e.Route == "/add" && e.Behind != "GET /first" {
				t.Errorf("with %d before it, it has waited behind %q", e.Queue, e.Behind)
			}
		}
	})
}

// A request that opens its session again has one Hold for each time, with the times, and the holder at that time.
func TestEachHoldIsObserved(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w, mux := &witness{}, app()
		handle(mux, "/again", func(s *session.Session, _ http.ResponseWriter, req *http.Request) {
			must(t, s.Commit(req.Context()))
			waitUntilFree(req)
			must(t, s.Reopen(req.Context()))
			time.Sleep(time.Second)
		})
		s, v := begun(t, r, middleware.Options{Observers: []middleware.Observer{w}}, mux)
		w.takeAll()
		again := v.hold(s.URL + "/again")
		free := v.hold(s.URL + "/pause")
		done := make(chan answer)
		go func() { done <- again() }()
		time.Sleep(2 * time.Second)
		free().want(t, 200, "stored")
		(<-done).want(t, 200, "")
		e := eventOf(t, w, "/again")
		if len(e.Holds) != 2 {
			t.Fatalf("%d holds, want 2", len(e.Holds))
		}
		first, second := e.Holds[0], e.Holds[1]
		if first.Acquired != e.Acquired || first.Released.Before(first.Acquired) || first.Behind != "" {
			t.Errorf("the first hold is %+v", first)
		}
		if second.Asked.Before(first.Released) || second.Acquired.Sub(second.Asked) != 2*time.Second || second.Behind != "GET /pause" ||
			second.Released.Sub(second.Acquired) != time.Second || second.Released != e.Committed {
			t.Errorf("the second hold is %+v", second)
		}
		if e.Waited != 2*time.Second || e.Held != time.Second || e.Behind != "" {
			t.Errorf("altogether it waited %v and held %v, behind %q", e.Waited, e.Held, e.Behind)
		}
	})
}

// If a lock is released for another process, that is told as handed over. A release for nobody is not told.
func TestAHandoverIsObserved(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		here, there := &witness{}, &witness{}
		s := newSite(t, r.Pool(t, 4), middleware.Options{Observers: []middleware.Observer{here}}, app())
		elsewhere := newSite(t, r.Pool(t, 4), middleware.Options{Observers: []middleware.Observer{there}}, app())
		v := newVisitor(t).everywhere()
		v.get(s.URL+"/add").want(t, 200, "1")
		here.takeAll()
		free := v.hold(s.URL + "/pause")
		waits := v.start(elsewhere.URL + "/add")
		time.Sleep(time.Second) // it is in Redis's queue
		free().want(t, 200, "stored")
		(<-waits).want(t, 200, "501")
		if got := happenings(here.takeAll()); !slices.Equal(got, []string{"handed_over"}) {
			t.Errorf("the holder was told %q", got)
		}
		if got := happenings(there.takeAll()); len(got) > 0 {
			t.Errorf("the next holder was told %q", got)
		}
	})
}

// A hold ends when the lock is released. If the request could not open the session, what it does afterwards is no
// hold.
func TestASessionThatCannotBeOpenedIsNotHeld(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w, mux := &witness{}, app()
		mux.HandleFunc("/lazy", func(_ http.ResponseWriter, req *http.Request) {
			for range 2 {
				if _, err := session.Start(req.Context()); err == nil {
					t.Error("a session that cannot be read is open")
				}
				time.Sleep(30 * time.Second)
			}
		})
		s, v := begun(t, r, middleware.Options{Observers: []middleware.Observer{w}, Mode: byPath(map[string]middleware.Mode{"/lazy": middleware.Lazy})}, mux)
		id := v.get(s.URL + "/id").body
		w.takeAll()
		r.Do(t, "SET", recordOf(id), "rubbish", "KEEPTTL")
		v.get(s.URL + "/lazy")
		e := w.one(t)
		if len(e.Holds) != 2 || e.Held != 0 {
			t.Errorf("the request has held the session for %v, in %d holds", e.Held, len(e.Holds))
		}
		for _, h := range e.Holds {
			if h.Acquired.IsZero() || h.Released != h.Acquired {
				t.Errorf("a hold is %+v", h)
			}
		}
	})
}

// Queue and Behind of a request are those of its first hold, even if that was in vain.
func TestWhoWasBeforeTheFirstHoldIsObserved(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w, mux := &witness{}, app()
		mux.HandleFunc("/lazy", func(_ http.ResponseWriter, req *http.Request) {
			ctx, cancel := context.WithTimeout(req.Context(), time.Second)
			defer cancel()
			if _, err := session.Start(ctx); err == nil {
				t.Error("Start has opened a session that another request holds")
			}
			time.Sleep(2 * time.Second)
			_, err := session.Start(req.Context())
			must(t, err)
		})
		s, v := begun(t, r, middleware.Options{Observers: []middleware.Observer{w}, Mode: byPath(map[string]middleware.Mode{"/lazy": middleware.Lazy})}, mux)
		w.takeAll()
		free := v.hold(s.URL + "/pause")
		done := v.start(s.URL + "/lazy")
		time.Sleep(2 * time.Second)
		free()
		<-done
		if e := eventOf(t, w, "/lazy"); e.Behind != "GET /pause" || len(e.Holds) != 2 || e.Holds[0].Behind != "GET /pause" || e.Holds[1].Behind != "" {
			t.Errorf("it waited behind %q, with the holds %+v", e.Behind, e.Holds)
		}
	})
}

// If a session ends while its holder has it open, that is told once, although both the watch and the lease find it.
func TestTheEndOfAHeldSessionIsObservedOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w := &witness{}
		s := newSiteOn(t, store.New(r.Pool(t, 4), store.Options{Lease: 10 * time.Second}), middleware.Options{Observers: []middleware.Observer{w}}, app())
		v := s.visitor(t)
		id := v.get(s.URL + "/id").body
		w.takeAll()
		free := v.hold(s.URL + "/pause")
		time.Sleep(2 * time.Second)
		must(t, s.sessions.End(t.Context(), id))
		time.Sleep(15 * time.Second)
		free()
		count := 0
		for _, what := range happenings(w.takeAll()) {
			if what == "ended_open" {
				count++
			}
		}
		if count != 1 {
			t.Errorf("the end is told %d times", count)
		}
	})
}
