package middleware_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
)

// Extended leases and lost locks are told, with the reason.
func TestLeasesAreObserved(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w := &witness{}
		s := newSiteOn(t, store.New(r.Pool(t, 4), store.Options{Lease: 3 * time.Second}), middleware.Options{Observers: []middleware.Observer{w}, MaxHold: 10 * time.Second}, app())
		v := s.visitor(t)
		w.takeAll()
		free := v.hold(s.URL + "/pause")
		time.Sleep(1500 * time.Millisecond)
		if got := happenings(w.takeAll()); !slices.Equal(got, []string{"extended"}) {
			t.Errorf("after half a lease: %q", got)
		}
		time.Sleep(10 * time.Second)
		got := happenings(w.takeAll())
		if !slices.Contains(got, "lost max_hold") {
			t.Errorf("after MaxHold: %q", got)
		}
		free().want(t, 503, "*")
		if e := w.one(t); e.Kind != "lost" {
			t.Errorf("%+v", e)
		}

		evicted := v.hold(s.URL + "/pause")
		w.takeAll()
		for _, key := range r.Keys(t) {
			if strings.HasSuffix(key, ".lock") {
				r.Do(t, "DEL", key)
			}
		}
		time.Sleep(1500 * time.Millisecond)
		all := w.takeAll()
		if got := happenings(all); !slices.Contains(got, "lost gone") {
			t.Errorf("without the lock's key: %q", got)
		}
		for _, e := range all {
			if e, ok := e.(*middleware.SessionEvent); ok && e.What == "extended" && !errors.Is(e.Err, store.ErrLost) {
				t.Errorf("the lease of the lost lock was extended: %v", e.Err)
			}
		}
		evicted().want(t, 503, "*")
	})
}

// If the request's own commit finds the lock lost, the request itself tells it, before its own event: another goroutine may
// come after the end of the server's span.
func TestALossThatTheCommitFindsIsToldByTheRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w := &witness{}
		slow := observerFunc(func(ctx context.Context, e middleware.Event) {
			if e, ok := e.(*middleware.SessionEvent); ok && e.What == "lost" {
				time.Sleep(time.Second)
			}
			w.Observe(ctx, e)
		})
		s, v := begun(t, r, middleware.Options{Observers: []middleware.Observer{slow}}, app())
		w.takeAll()
		free := v.hold(s.URL + "/pause")
		for _, key := range r.Keys(t) {
			if strings.HasSuffix(key, ".lock") {
				r.Do(t, "DEL", key)
			}
		}
		free().want(t, 503, "*")
		time.Sleep(2 * time.Second)
		var order []string
		for _, e := range w.takeAll() {
			switch e := e.(type) {
			case *middleware.SessionEvent:
				order = append(order, e.What)
			case *middleware.RequestEvent:
				order = append(order, "request")
			}
		}
		if lost := slices.Index(order, "lost"); lost < 0 || lost > slices.Index(order, "request") {
			t.Errorf("the order is %q", order)
		}
	})
}
