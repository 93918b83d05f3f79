package middleware_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/fakeredis"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// SLOW.md leads from symptoms to their cause. Here are five programs that are slow or fail. Each shows what the page
// says. Two of them are tried again with the page's remedy.

// A report is what an operator sees of a minute, as by the metrics and spans of middleware/otel.
type report struct {
	waited  time.Duration            // the longest wait
	behind  map[string]int           // waits by the label of the holder
	process string                   // of a holder elsewhere
	held    map[string]time.Duration // the longest hold, by route
	kinds   map[string]int           // of errors
	status  map[string]int           // of Redis's refusals
	slowest time.Duration            // exchange with Redis
}

func (w *witness) report() report {
	r := report{behind: map[string]int{}, held: map[string]time.Duration{}, kinds: map[string]int{}, status: map[string]int{}}
	for _, e := range w.takeAll() {
		switch e := e.(type) {
		case *middleware.RequestEvent:
			r.waited = max(r.waited, e.Waited)
			r.held[e.Route] = max(r.held[e.Route], e.Held)
			if e.Waited > 10*time.Millisecond {
				r.behind[e.Behind]++
				r.process += e.BehindProcess
			}
			if e.Kind != "" {
				r.kinds[e.Kind]++
			}
		case *middleware.ExchangeEvent:
			r.slowest = max(r.slowest, e.Took)
			if e.Status != "" && e.Status != "NOSCRIPT" {
				r.status[e.Status]++
			}
		}
	}
	return r
}

// A slowSite is a program that is slow, and its only visitor.
func slowSite(t *testing.T, r *redistest.Server, o middleware.Options, mux *http.ServeMux) (*site, *visitor, *witness) {
	w := &witness{}
	o.Observers = []middleware.Observer{w}
	s, v := begun(t, r, o, mux)
	w.takeAll()
	return s, v, w
}

// A handler works for seconds while it holds its session: others wait behind its route, whose holds are long.
func TestSlowBecauseOfASlowHandler(t *testing.T) {
	for _, mended := range []bool{false, true} {
		inFakeTime(t, fmt.Sprint("mended ", mended), func(t *testing.T, r *redistest.Server) {
			mux := app()
			handle(mux, "/report", func(s *session.Session, _ http.ResponseWriter, r *http.Request) {
				s.Set("report", "asked for")
				if mended { // the remedy: the session is saved before the work
					must(t, s.Commit(r.Context()))
				}
				time.Sleep(3 * time.Second)
			})
			s, v, w := slowSite(t, r, middleware.Options{}, mux)
			slow := v.start(s.URL + "/report")
			time.Sleep(time.Millisecond)
			for range 5 {
				v.get(s.URL+"/add").want(t, 200, "*")
			}
			(<-slow).want(t, 200, "")
			got := w.report()
			switch sick := got.waited > 2*time.Second && got.behind["GET /report"] > 0 && got.held["/report"] >= 3*time.Second; {
			case !mended && !sick:
				t.Errorf("the cause does not show: %+v", got)
			case mended && (got.waited > 50*time.Millisecond || got.held["/report"] > 50*time.Millisecond):
				t.Errorf("the remedy does not help: %+v", got)
			}
			if got.slowest > 50*time.Millisecond || len(got.kinds) > 0 {
				t.Errorf("Redis seems to be the cause: %+v", got)
			}
		})
	}
}

// Many tabs poll, and each poll holds the session while it asks a database: no hold is long, but the waits are, and they
// are behind the poll's route.
func TestSlowBecauseOfPolls(t *testing.T) {
	for _, mended := range []bool{false, true} {
		inFakeTime(t, fmt.Sprint("mended ", mended), func(t *testing.T, r *redistest.Server) {
			mux := app()
			handle(mux, "/poll", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) {
				_, _ = session.Get[int](s, "n")
				time.Sleep(100 * time.Millisecond) // asks a database
			})
			o := middleware.Options{}
			if mended { // the remedy: a poll only reads
				o.Mode = byPath(map[string]middleware.Mode{"/poll": middleware.ReadOnly})
			}
			s, v, w := slowSite(t, r, o, mux)
			var polls []chan answer
			for i := range 20 {
				polls = append(polls, v.start(s.URL+"/poll"))
				if i == 0 {
					synctest.Wait() // the first poll holds the session, so the others know for whom they wait
				}
			}
			time.Sleep(time.Millisecond)
			v.get(s.URL+"/add").want(t, 200, "2")
			for _, p := range polls {
				(<-p).want(t, 200, "")
			}
			got := w.report()
			switch sick := got.waited > time.Second && got.behind["GET /poll"] >= 19 && got.held["/poll"] < 500*time.Millisecond; {
			case !mended && !sick:
				t.Errorf("the cause does not show: %+v", got)
			case mended && got.waited > 50*time.Millisecond:
				t.Errorf("the remedy does not help: %+v", got)
			}
		})
	}
}

// A process was stopped while it held a session: the others wait behind that process, until its lease has expired.
func TestSlowBecauseOfAPausedProcess(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s, v, w := slowSite(t, r, middleware.Options{LockWait: 20 * time.Second}, app())
		_, lock := keysOf(v.get(s.URL + "/id").body)
		w.takeAll()
		r.Do(t, "SET", lock, "AAAAAAAAAAAAAAAA 946684800000 web-2/77 POST /order", "PX", 10_000) // and nobody extends it
		v.get(s.URL+"/add").want(t, 200, "2")
		got := w.report()
		if got.waited < 9*time.Second || got.process != "web-2/77" || got.behind["POST /order"] != 1 || got.held["/add"] > 50*time.Millisecond {
			t.Errorf("the cause does not show: %+v", got)
		}
	})
}

// Redis is full: requests fail at once as unavailable, with Redis's word, and nobody waits.
func TestSlowBecauseRedisIsFull(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s, v, w := slowSite(t, r, middleware.Options{}, app())
		r.Fake(func(f *fakeredis.Server) { f.Full = true })
		v.get(s.URL+"/add").want(t, 503, "*")
		got := w.report()
		if got.kinds["unavailable"] != 1 || got.status["OOM"] == 0 || got.waited > 50*time.Millisecond {
			t.Errorf("the cause does not show: %+v", got)
		}
		r.Fake(func(f *fakeredis.Server) { f.Full = false })
		v.get(s.URL+"/add").want(t, 200, "2")
	})
}

// Redis is frozen: its exchanges take as long as they may, and requests fail as unavailable.
func TestSlowBecauseRedisIsSilent(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w := &witness{}
		s := newSiteOn(t, store.New(r.Pool(t, 4), store.Options{Timeout: time.Second}), middleware.Options{Observers: []middleware.Observer{w}}, app())
		v := s.visitor(t)
		w.takeAll()
		r.Pause(t)
		v.get(s.URL+"/add").want(t, 503, "*")
		r.Resume(t)
		got := w.report()
		if got.kinds["unavailable"] != 1 || got.slowest < time.Second || got.behind["GET /add"] > 0 {
			t.Errorf("the cause does not show: %+v", got)
		}
	})
}
