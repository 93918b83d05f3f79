package middleware_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// pausing adds /pause to mux: it stores n = 500 and returns once free is closed.
func pausing(mux *http.ServeMux) (busy, free chan struct{}) {
	busy, free = make(chan struct{}), make(chan struct{})
	mux.HandleFunc("/pause", func(w http.ResponseWriter, r *http.Request) {
		close(busy)
		<-free
		session.FromContext(r.Context()).Set("n", 500)
		fmt.Fprint(w, "stored")
	})
	return busy, free
}

// P4: the write that came first is saved, and then the session ends.
func TestALogoutWaitsForTheWriteBeforeIt(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		busy, free := pausing(mux)
		s := newSite(t, r.Pool(t, 4), middleware.Options{}, mux)
		v := newVisitor(t)
		v.get(s.URL+"/add").want(t, 200, "1")
		old := with(t, v.cookies(s)...)

		writing, leaving := make(chan answer, 1), make(chan answer, 1)
		go func() { writing <- old.get(s.URL + "/pause") }()
		<-busy
		go func() { leaving <- v.get(s.URL + "/logout") }()
		close(free)
		(<-writing).want(t, 200, "stored")
		(<-leaving).want(t, 200, "")
		old.get(s.URL+"/get").want(t, 200, "0")
		if n := len(v.cookies(s)); n != 0 {
			t.Errorf("the visitor still has %d cookies", n)
		}
	})
}

// P4: a write that comes after the logout is refused. It brings nothing back,
// and its answer leaves the visitor's cookies alone.
func TestAWriteAfterTheLogoutIsRefused(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		for _, end := range []string{"/logout", "/login"} {
			t.Run(end, func(t *testing.T) {
				s := newSite(t, r.Pool(t, 4), middleware.Options{}, app())
				v := newVisitor(t)
				v.get(s.URL+"/add").want(t, 200, "1")
				old := with(t, v.cookies(s)...)
				record, lock := keysOf(v.get(s.URL + "/id").body)

				v.get(s.URL+end).want(t, 200, "")
				stone, _ := r.Get(t, record)
				for path, status := range map[string]int{"/add": 409, "/get": 200, "/logout": 200, "/nothing": 200} {
					a := old.get(s.URL + path)
					a.want(t, status, "*")
					if a.sets() {
						t.Errorf("%s: the answer touches the cookie: %v", path, a.Header)
					}
				}
				old.get(s.URL+"/get").want(t, 200, "0")
				if now, _ := r.Get(t, record); now != stone {
					t.Errorf("the tombstone %s became %s", stone, now)
				}
				if r.Exists(t, lock) {
					t.Error("a lock was taken on an ended session")
				}
				if end == "/login" {
					v.get(s.URL+"/get").want(t, 200, "1") // under the new id
				}
			})
		}
	})
}

// P4: a request that waited while the session ended finds it ended.
func TestAWaitingRequestFindsTheSessionEnded(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		busy, free := make(chan struct{}), make(chan struct{})
		mux := app()
		mux.HandleFunc("/slow-logout", func(_ http.ResponseWriter, req *http.Request) {
			close(busy)
			<-free
			session.FromContext(req.Context()).Destroy()
		})
		waiting := make(chan struct{}, 1)
		s := newSite(t, r.Pool(t, 4), middleware.Options{Mode: func(req *http.Request) middleware.Mode {
			if req.URL.Path == "/pause-free" {
				waiting <- struct{}{}
			}
			return middleware.Exclusive
		}}, mux)
		mux.HandleFunc("/pause-free", func(_ http.ResponseWriter, req *http.Request) {
			session.FromContext(req.Context()).Set("n", 1)
		})
		v := newVisitor(t)
		v.get(s.URL+"/add").want(t, 200, "1")
		old := with(t, v.cookies(s)...)
		leaving, writing := make(chan answer, 1), make(chan answer, 1)
		go func() { leaving <- v.get(s.URL + "/slow-logout") }()
		<-busy
		go func() { writing <- old.get(s.URL + "/pause-free") }()
		<-waiting // it queues up behind the logout, or finds the tombstone at once
		close(free)
		(<-leaving).want(t, 200, "")
		(<-writing).want(t, 409, "*")
	})
}

// P4: a new id takes the data and the age of the old one with it.
func TestRenewMovesTheSession(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		mux.HandleFunc("/renew", func(_ http.ResponseWriter, req *http.Request) { session.FromContext(req.Context()).Renew() })
		s := newSite(t, r.Pool(t, 4), middleware.Options{}, mux)
		v := newVisitor(t)
		v.get(s.URL+"/add").want(t, 200, "1")
		before := v.get(s.URL + "/id").body
		if a := v.get(s.URL + "/renew"); !a.sets() {
			t.Fatalf("no new cookie: %v", a.Header)
		}
		after := v.get(s.URL + "/id").body
		if before == after {
			t.Error("the id is still the old one")
		}
		v.get(s.URL+"/get").want(t, 200, "1")
		if n := len(r.Keys(t)); n != 2 {
			t.Errorf("keys are %v; want the record and the tombstone", r.Keys(t))
		}
	})
}

// P3: a holder that was paused past its lease cannot write over the next one.
func TestAStaleHolderCannotWrite(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		busy, free := pausing(mux)
		s := newSite(t, r.Pool(t, 4), middleware.Options{MaxHold: 300 * time.Millisecond}, mux)
		v := newVisitor(t)
		v.get(s.URL+"/add").want(t, 200, "1")
		stale := make(chan answer, 1)
		go func() { stale <- v.get(s.URL + "/pause") }()
		<-busy
		v.get(s.URL+"/add").want(t, 200, "2") // waits until the lock has run out
		close(free)
		(<-stale).want(t, 503, "*")
		v.get(s.URL+"/get").want(t, 200, "2")
		if len(s.log.Lines("lock was lost")) != 1 {
			t.Errorf("log:\n%s", s.log)
		}
	})
}
