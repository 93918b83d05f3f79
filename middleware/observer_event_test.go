package middleware_test

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"weak"

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

// What a goroutine does after its request is told, but is no part of the request's event.
func TestWhatOutlivesARequestIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w, mux := &witness{}, app()
		end := make(chan struct{})
		var s *site
		handle(mux, "/ends-later", func(one *session.Session, _ http.ResponseWriter, req *http.Request) {
			ctx, id := context.WithoutCancel(req.Context()), one.ID()
			go func() {
				<-end
				_ = s.sessions.End(ctx, id)
			}()
		})
		s, v := begun(t, r, middleware.Options{Observers: []middleware.Observer{w}}, mux)
		v.get(s.URL+"/ends-later").want(t, 200, "")
		w.takeAll()
		close(end)
		told := map[string]int{}
		for _, e := range w.takeAll() {
			told[fmt.Sprintf("%T", e)]++
		}
		if told["*middleware.SessionEvent"] != 1 || told["*middleware.ExchangeEvent"] == 0 || told["*middleware.RequestEvent"] != 0 {
			t.Errorf("after the request, the observer was told %v", told)
		}
	})
}

// An observer may keep its context. That keeps neither the request nor its session.
func TestAKeptContextKeepsNoSession(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w, mux := &witness{}, app() // it keeps all contexts
		var used weak.Pointer[session.Session]
		handle(mux, "/used", func(one *session.Session, _ http.ResponseWriter, _ *http.Request) { used = weak.Make(one) })
		s, v := begun(t, r, middleware.Options{Observers: []middleware.Observer{w}}, mux)
		v.get(s.URL+"/used").want(t, 200, "")
		v.get(s.URL+"/add").want(t, 200, "2") // so that the connection has nothing of the last request
		for range 10 {
			runtime.GC()
		}
		if used.Value() != nil {
			t.Error("a context keeps the session of a request that is done")
		}
		runtime.KeepAlive(w)
	})
}

// The memory of an event is not used again while the event is still being told: a goroutine that has committed for
// its request may tell slower than the request ends.
func TestAnEventIsValidUntilItIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		type pause struct{ told, goOn chan struct{} }
		asked, next := make(chan pause, 1), make(chan pause, 1)
		slow := observerFunc(func(_ context.Context, e middleware.Event) {
			if x, ok := e.(*middleware.ExchangeEvent); e == nil || ok && x.Commands == 0 {
				t.Error("an event is gone before it was told")
				return
			}
			select {
			case p := <-next:
				before := e.Clone()
				close(p.told)
				<-p.goOn
				if !reflect.DeepEqual(e, before) {
					t.Errorf("%+v became %+v while it was told", before, e)
				}
			default:
			}
		})
		mux := app()
		handle(mux, "/commits", func(s *session.Session, _ http.ResponseWriter, req *http.Request) {
			p := <-asked
			next <- p
			go func() { _ = s.Commit(req.Context()) }()
			<-p.told
		})
		s := newSite(t, r.Pool(t, 4), middleware.Options{Observers: []middleware.Observer{slow}}, mux)
		one, other := s.visitor(t), s.visitor(t)
		for range 30 {
			p := pause{make(chan struct{}), make(chan struct{})}
			asked <- p
			one.get(s.URL+"/commits").want(t, 200, "")
			other.post(s.URL+"/add").want(t, 200, "*")
			close(p.goOn)
			synctest.Wait()
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

// A record that could not be stored has no size: the event has that of the record as it was read.
func TestARecordThatIsNotStoredIsNotMeasured(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w := &witness{}
		s, v := begun(t, r, middleware.Options{Observers: []middleware.Observer{w}}, app())
		w.takeAll()
		v.get(s.URL+"/id").want(t, 200, "*")
		read := w.one(t).Bytes
		free := v.hold(s.URL + "/pause")
		for _, key := range r.Keys(t) {
			if strings.HasSuffix(key, ".lock") {
				r.Do(t, "DEL", key)
			}
		}
		free().want(t, 503, "*")
		if e := eventOf(t, w, "/pause"); e.Bytes != read || read == 0 {
			t.Errorf("%d bytes, and %d were read", e.Bytes, read)
		}
		r.Stop(t)
		newVisitor(t).post(s.URL+"/add").want(t, 503, "*")
		if e := eventOf(t, w, "/add"); e.Bytes != 0 {
			t.Errorf("%d bytes of a session that could not begin", e.Bytes)
		}
	})
}
