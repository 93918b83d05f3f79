package middleware_test

import (
	"context"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// A handler may make as many events as it likes: not all of them are kept until it returns. Each is told once. If an
// observer panics with each, its stack does not grow.
func TestAHandlerWithManyEvents(t *testing.T) {
	for name, looks := range map[string]int{"that are kept": 400, "too many to keep": 3000} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) { makesEvents(t, r, looks) })
	}
}

func makesEvents(t *testing.T, r *redistest.Server, looks int) {
	var s *site
	var told []middleware.Event
	var deep atomic.Int32 // calls of the observer on a stack of 100 functions and more
	w := &witness{}
	panics := observerFunc(func(context.Context, middleware.Event) {
		if runtime.Callers(0, make([]uintptr, 100)) == 100 {
			deep.Add(1)
		}
		panic("no observer")
	})
	mux := app()
	handle(mux, "/look", func(_ *session.Session, _ http.ResponseWriter, r *http.Request) {
		for range looks {
			_, _ = s.sessions.Peek(r.Context(), otherID)
		}
		synctest.Wait()
		told = w.takeAll()
	})
	s = newSite(t, r.Pool(t, 8), middleware.Options{Observers: []middleware.Observer{w, panics}, Logger: slog.New(slog.DiscardHandler)}, mux)
	v := s.visitor(t)
	w.takeAll()
	v.get(s.URL+"/look").want(t, 200, "")
	if len(told) < looks-1024 {
		t.Errorf("before the handler returns, the observer is told of %d events", len(told))
	}
	told = append(told, w.takeAll()...)
	if n, e := len(told), requestsIn(told); len(e) != 1 || e[0].RoundTrips != n-1 || n-1 < looks {
		t.Errorf("the observer is told of %d events, of them %+v", n, e)
	}
	if n := deep.Load(); n > 0 {
		t.Errorf("the observer was called on a deep stack %d times", n)
	}
}

// The request itself tells that its session has ended, just before its own event, however much has happened since.
func TestAnEndedSessionIsToldByItsRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		var s *site
		w, mux := &witness{}, app()
		entered := make(chan struct{})
		handle(mux, "/look", func(_ *session.Session, _ http.ResponseWriter, r *http.Request) {
			entered <- struct{}{}
			<-r.Context().Done()
			for range 1100 {
				_, _ = s.sessions.Peek(context.WithoutCancel(r.Context()), otherID)
			}
			synctest.Wait()
			if slices.Contains(happenings(w.takeAll()), "ended_open") {
				t.Error("the end is told before the handler has returned")
			}
		})
		s, v := begun(t, r, middleware.Options{Observers: []middleware.Observer{w}}, mux)
		id := v.get(s.URL + "/id").body
		done := v.start(s.URL + "/look")
		<-entered
		must(t, s.sessions.End(t.Context(), id))
		<-done
		all := w.takeAll()
		told := slices.IndexFunc(all, func(e middleware.Event) bool {
			happened, ok := e.(*middleware.SessionEvent)
			return ok && happened.What == "ended_open"
		})
		own := slices.IndexFunc(all, func(e middleware.Event) bool { _, ok := e.(*middleware.RequestEvent); return ok })
		if told < 0 || told > own {
			t.Errorf("the end is event %d, and the request's own is event %d", told, own)
		}
	})
}

// A stream may open its session as often as it likes: its event has the first holds, and the last.
func TestARequestWithManyHolds(t *testing.T) {
	const times = 100
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w := &witness{}
		mux := app()
		handle(mux, "/stream", func(own *session.Session, _ http.ResponseWriter, r *http.Request) {
			for i := range times {
				must(t, own.Commit(r.Context()))
				redistest.Elapse(1e9)
				must(t, own.Reopen(r.Context()))
				own.Set("i", i)
			}
		})
		s := newSiteOn(t, store.New(r.Pool(t, 8), store.Options{}), middleware.Options{Observers: []middleware.Observer{w}}, mux)
		v := s.visitor(t)
		w.takeAll()
		v.get(s.URL+"/stream").want(t, 200, "")
		e := requestsIn(w.takeAll())[0]
		if n := len(e.Holds); n != 64 {
			t.Fatalf("the event has %d holds", n)
		}
		first, last := e.Holds[0], e.Holds[63]
		if d := last.Acquired.Sub(first.Acquired); d.Seconds() < times || last.Released.Before(last.Acquired) {
			t.Errorf("the last hold begins %v after the first: %+v", d, last)
		}
	})
}
