package middleware_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
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

// Of two Sessions with different stores, one inside the other, each tells its own observers what it does.
func TestNestedSessionsTellTheirOwnObservers(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		outerWitness, innerWitness := &witness{}, &witness{}
		sessions := func(name string, w *witness) *middleware.Sessions {
			o := middleware.Options{Keys: [][]byte{testKey}, Observers: []middleware.Observer{w}}
			o.Cookie.Name = name
			s, err := middleware.New(store.New(r.Pool(t, 4), store.Options{Prefix: name + ":"}), o)
			must(t, err)
			return s
		}
		outer, inner := sessions("outer", outerWitness), sessions("inner", innerWitness)
		mux := http.NewServeMux()
		mux.HandleFunc("/begin", func(w http.ResponseWriter, req *http.Request) {
			s := outer.FromContext(req.Context())
			s.Set("n", 1)
			fmt.Fprint(w, s.ID())
		})
		mux.HandleFunc("/end", func(_ http.ResponseWriter, req *http.Request) {
			must(t, outer.End(req.Context(), req.URL.Query().Get("id")))
		})
		none := middleware.Options{Mode: func(*http.Request) middleware.Mode { return middleware.None }}
		s := newSite(t, r.Pool(t, 1), none, outer.Handler(inner.Handler(mux)))
		id := newVisitor(t).get(s.URL + "/begin").body
		outerWitness.takeAll()
		innerWitness.takeAll()
		newVisitor(t).get(s.URL+"/end?id="+id).want(t, 200, "")
		if got := happenings(outerWitness.takeAll()); !slices.Equal(got, []string{"ended end"}) {
			t.Errorf("the observer of the Sessions whose session has ended was told %q", got)
		}
		if got := innerWitness.takeAll(); len(got) > 0 {
			t.Errorf("the observer of the others was told %v", got)
		}
	})
}

// A request without a session has no event, even if its handler asks for the sessions of a user.
func TestARequestThatOnlyListsSessionsHasNoEvent(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w, mux := &witness{}, app()
		var s *site
		mux.HandleFunc("/list", func(_ http.ResponseWriter, req *http.Request) {
			_, err := s.sessions.List(req.Context(), "ann")
			must(t, err)
		})
		s = newSite(t, r.Pool(t, 4), middleware.Options{Observers: []middleware.Observer{w}}, mux)
		newVisitor(t).get(s.URL+"/list").want(t, 200, "")
		if all := requestsIn(w.takeAll()); len(all) > 0 {
			t.Errorf("it has the event %+v", all[0])
		}
	})
}

// What a hook does after an Update that has ended its session is no part of the Update's hold or outcome.
func TestAHookIsNoPartOfAnUpdate(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w := &witness{}
		o := middleware.Options{Observers: []middleware.Observer{w}}
		o.Hooks.End = func(context.Context, string) {
			time.Sleep(5 * time.Second)
			panic("a hook")
		}
		s, v := begun(t, r, o, app())
		id := v.get(s.URL + "/id").body
		w.takeAll()
		func() {
			defer func() { _ = recover() }()
			_ = s.sessions.Update(t.Context(), id, func(s *session.Session) error { s.Destroy(); return nil })
		}()
		if e := w.one(t); e.Outcome != "ended" || !e.Ended || e.Held != 0 {
			t.Errorf("its outcome is %q, ended %v, held for %v", e.Outcome, e.Ended, e.Held)
		}
	})
}

// An observer alone does not call Options.Label: after the response, a panic there would cut it off.
func TestAnObserverNeedsNoLabel(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w := &witness{}
		o := middleware.Options{Observers: []middleware.Observer{w}, Mode: byPath(map[string]middleware.Mode{"/len": middleware.ReadOnly})}
		o.Label = func(r *http.Request) string {
			if r.URL.Path == "/len" {
				panic("a label")
			}
			return "a label"
		}
		s, v := begun(t, r, o, app())
		w.takeAll()
		v.get(s.URL+"/len").want(t, 200, "1")
		if e := w.one(t); e.Label != "GET /len" {
			t.Errorf("its label is %q", e.Label)
		}
	})
}

// A route is the pattern without its method, however many blanks are between the two.
func TestRoutesOfPatternsWithBlanks(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w, mux := &witness{}, app()
		for _, pattern := range []string{"GET  /two", "GET\t/tab"} {
			handle(mux, pattern, func(s *session.Session, _ http.ResponseWriter, _ *http.Request) { s.Set("n", 1) })
		}
		s := newSite(t, r.Pool(t, 4), middleware.Options{Observers: []middleware.Observer{w}}, mux)
		for _, route := range []string{"/two", "/tab"} {
			newVisitor(t).get(s.URL + route)
			if e := w.one(t); e.Route != route || e.Label != "GET "+route {
				t.Errorf("the route is %q, the label %q", e.Route, e.Label)
			}
		}
	})
}

// The second run of a handler has the route of the first, even if the path in the pattern has a blank.
func TestRouteOfASecondRun(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w, mux := &witness{}, app()
		o := middleware.Options{Observers: []middleware.Observer{w}, Mode: byPath(map[string]middleware.Mode{"/a b": middleware.Optimistic})}
		var s *site
		var v *visitor
		runs := 0
		handle(mux, "GET /a b", func(one *session.Session, _ http.ResponseWriter, _ *http.Request) {
			if runs++; runs == 1 {
				v.get(s.URL+"/add").want(t, 200, "2")
				w.takeAll()
			}
			one.Set("seen", true)
		})
		s, v = begun(t, r, o, mux)
		v.get(s.URL+"/a%20b").want(t, 200, "")
		if e := w.one(t); e.Runs != 2 || e.Route != "/a b" || e.Label != "GET /a b" {
			t.Errorf("%d runs, the route is %q, the label %q", e.Runs, e.Route, e.Label)
		}
	})
}

// A stream is shown as open since it arrived, even if it has called EndAll.
func TestSinceWhenAStreamIsOpen(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		var s *site
		handle(mux, "/stream", func(one *session.Session, _ http.ResponseWriter, req *http.Request) {
			must(t, one.Commit(req.Context()))
			began := time.Now()
			time.Sleep(10 * time.Second)
			_, err := s.sessions.EndAll(req.Context(), "nobody")
			must(t, err)
			all := slices.Collect(s.sessions.Requests())
			if len(all) != 1 || all[0].State != "open" || all[0].Since.After(began) {
				t.Errorf("%+v are under way, and the stream arrived at %v", all, began)
			}
		})
		var v *visitor
		s, v = begun(t, r, middleware.Options{}, mux)
		v.get(s.URL+"/stream").want(t, 200, "")
	})
}

// Each request that came with a session's cookie has an event. That includes a request that learns from the one
// before it that the session has ended, and a read whose session has a new ID by now.
func TestARequestWithACookieHasAnEvent(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w, mux := &witness{}, app()
		handle(mux, "/enter", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) { s.Login("ann") })
		handle(mux, "/leave", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) {
			time.Sleep(time.Second)
			s.Destroy()
		})
		o := middleware.Options{Observers: []middleware.Observer{w}, Mode: byPath(map[string]middleware.Mode{"/len": middleware.ReadOnly})}
		s, v := begun(t, r, o, mux)
		before := v.cookie(s)
		v.get(s.URL+"/enter").want(t, 200, "")
		w.takeAll()
		late := newVisitor(t)
		at, err := url.Parse(s.URL)
		must(t, err)
		late.Jar.SetCookies(at, []*http.Cookie{before})
		late.get(s.URL+"/len").want(t, 200, "0")
		if e := w.one(t); e.Route != "/len" || e.RoundTrips == 0 || e.Session != "" {
			t.Errorf("the event of a request whose session has a new ID: %+v", e)
		}
		all := []chan answer{v.start(s.URL + "/leave")}
		synctest.Wait()
		for range 3 {
			all = append(all, v.start(s.URL+"/id"))
		}
		for _, one := range all {
			<-one
		}
		if n := len(requestsIn(w.takeAll())); n != len(all) {
			t.Errorf("%d of %d requests have an event", n, len(all))
		}
	})
}

// If a handler panics because its commit has failed, the outcome is failed, and not abandoned.
func TestAPanicAfterACommitThatFails(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w, mux := &witness{}, app()
		var s *site
		handle(mux, "/pay", func(one *session.Session, _ http.ResponseWriter, req *http.Request) {
			one.Set("n", 2)
			must(t, s.sessions.End(context.WithoutCancel(t.Context()), one.ID()))
			if err := one.Commit(req.Context()); err != nil {
				panic(http.ErrAbortHandler)
			}
			t.Error("a session that has ended was saved")
		})
		var v *visitor
		s, v = begun(t, r, middleware.Options{Observers: []middleware.Observer{w}}, mux)
		w.takeAll()
		v.post(s.URL + "/pay")
		if e := w.one(t); e.Outcome != "failed" || e.Err == nil || e.Kind == "" {
			t.Errorf("its outcome is %q, with the error %v of the kind %q", e.Outcome, e.Err, e.Kind)
		}
	})
}

// An event names no session that nobody has stored.
func TestAnIDThatIsOnlyDrawnIsNotTold(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w := &witness{}
		s, v := begun(t, r, middleware.Options{Observers: []middleware.Observer{w}}, app())
		must(t, s.sessions.End(t.Context(), v.get(s.URL+"/id").body))
		w.takeAll()
		v.get(s.URL+"/id").want(t, 200, "*")
		if e := w.one(t); e.Session != "" || e.Dead != 1 {
			t.Errorf("the event names the session %q, with %d dead cookies", e.Session, e.Dead)
		}
	})
}

// Each request with a dead cookie counts that cookie, even if the process knows already that its session has ended.
func TestEachRequestWithADeadCookieIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w := &witness{}
		s := newUserSite(t, r, middleware.Options{Observers: []middleware.Observer{w}})
		v := s.visitor(t)
		v.get(s.URL+"/login/ann").want(t, 200, "")
		must(t, s.sessions.End(t.Context(), v.get(s.URL+"/id").body))
		w.takeAll()
		v.background("POST", s.URL+"/add").want(t, 200, "1") // begins a guest's session beside the dead one
		if e := w.one(t); len(e.Holds) != 1 || e.Holds[0].Kind != "gone" || e.Kind != "" {
			t.Errorf("the event should have one hold in vain, and no error: %+v", e)
		}
		for range 3 {
			w.takeAll()
			v.background("POST", s.URL+"/add").want(t, 200, "*")
			if e := w.one(t); e.Session == "" || e.Dead != 1 {
				t.Errorf("the event names the session %q, with %d dead cookies", e.Session, e.Dead)
			}
		}
	})
}

// After a panic, the outcome is abandoned: also if the panic is in the commit, or comes after an error that the
// handler has got over.
func TestAPanicIsToldAsAbandoned(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w, mux := &witness{}, app()
		handle(mux, "/reopens", func(s *session.Session, _ http.ResponseWriter, req *http.Request) {
			must(t, s.Commit(req.Context()))
			ended, end := context.WithCancel(req.Context())
			end()
			if err := s.Reopen(ended); err == nil {
				t.Error("Reopen has succeeded with a context that has ended")
			}
			must(t, s.Reopen(req.Context()))
			s.Set("n", 2)
			panic(http.ErrAbortHandler)
		})
		handle(mux, "/changes", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) { s.Set("n", 2) })
		o := middleware.Options{Observers: []middleware.Observer{w}, Mode: byPath(map[string]middleware.Mode{"/changes": middleware.ReadOnly})}
		o.Label = func(r *http.Request) string {
			if r.URL.Path == "/changes" {
				panic(http.ErrAbortHandler) // in the commit, which says whose change it refuses
			}
			return "a label"
		}
		s, v := begun(t, r, o, mux)
		w.takeAll()
		for _, path := range []string{"/reopens", "/changes"} {
			v.post(s.URL + path)
			if e := w.one(t); e.Outcome != "abandoned" {
				t.Errorf("%s: the outcome is %q", path, e.Outcome)
			}
		}
	})
}

// An Update that fails holds its session until the lock is released.
func TestAnUpdateThatFailsHoldsUntilItsRelease(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w := &witness{}
		st := store.NewOn(far{transport.NewRedigo(r.Pool(t, 4), 5*time.Second)}, steady)
		s := newSiteOn(t, st, middleware.Options{Observers: []middleware.Observer{w}}, app())
		id := s.visitor(t).get(s.URL + "/id").body
		w.takeAll()
		if err := s.sessions.Update(t.Context(), id, func(s *session.Session) error { s.Renew(); return nil }); err == nil {
			t.Error("an Update has made a new cookie")
		}
		if e := w.one(t); e.Held != time.Second {
			t.Errorf("it was held for %v, and the round trip that releases it takes a second", e.Held)
		}
	})
}
