package middleware_test

import (
	"net/http"
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// The memory of an event is used again for other requests. A goroutine that outlives its request must not write there.
func TestAnEventIsOnlyOfItsRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w, mux := &witness{}, app()
		change := make(chan struct{})
		handle(mux, "/outlived", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) {
			go func() {
				<-change
				s.Set("late", true)
			}()
		})
		s := newSite(t, r.Pool(t, 4), middleware.Options{Observers: []middleware.Observer{w}}, mux)
		one, other := s.visitor(t), s.visitor(t)
		for range 30 { // since a pool need not return what was put into it
			one.get(s.URL+"/outlived").want(t, 200, "")
			w.takeAll()
			free := other.hold(s.URL + "/pause")
			change <- struct{}{}
			synctest.Wait()
			free().want(t, 200, "stored")
			if e := w.one(t); e.Err != nil || e.Outcome == "failed" || e.Route != "/pause" {
				t.Fatalf("a change that another request has made too late is told of this one: %+v", e)
			}
		}
	})
}

func TestTheCloneOfAnEventIsItsOwn(t *testing.T) {
	for _, e := range []middleware.Event{
		&middleware.RequestEvent{Label: "POST /cart", Holds: []middleware.Hold{{Queue: 1}, {Queue: 2}}},
		&middleware.ExchangeEvent{Script: "commit", Holds: 3},
		&middleware.SessionEvent{Session: "id", What: "began"},
	} {
		kept := e.Clone()
		if !reflect.DeepEqual(kept, e) {
			t.Errorf("the clone of %+v is %+v", e, kept)
		}
		if r, ok := e.(*middleware.RequestEvent); ok {
			r.Holds[0].Queue = 7
		}
		reflect.ValueOf(e).Elem().SetZero()
		if r, ok := kept.(*middleware.RequestEvent); ok && r.Holds[0].Queue != 1 || reflect.ValueOf(kept).Elem().IsZero() {
			t.Errorf("the clone changes with its event: %+v", kept)
		}
	}
}
