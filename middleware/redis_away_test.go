package middleware_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// P8: without Redis a request gets an error, never an empty session. When Redis is back, everything
// works again by itself.
func TestRedisStoppedIs503AndComesBack(t *testing.T) {
	onEach(t, func(t *testing.T, r *redistest.Server) {
		modes := map[string]middleware.Mode{"/add": middleware.Exclusive, "/get": middleware.ReadOnly}
		s, v := begun(t, r, middleware.Options{Mode: byPath(modes)}, app())
		r.Stop(t)
		for path := range modes {
			v.get(s.URL+path).want(t, 503, "*")
		}
		newVisitor(t).get(s.URL+"/add").want(t, 503, "*") // and no cookie, since no session was saved
		newVisitor(t).get(s.URL+"/get").want(t, 200, "0") // has no session, and needs no Redis
		r.Restart(t)
		// Restarted empty: the session is gone, and a new one begins under a new ID.
		v.get(s.URL+"/get").want(t, 200, "0")
		a := v.get(s.URL + "/add")
		a.want(t, 200, "1")
		if !a.sets() {
			t.Error("the unknown ID was adopted")
		}
		v.get(s.URL+"/add").want(t, 200, "2")
	})
}

// P8: a Redis that hangs costs at most one and a quarter Timeouts. Requests that wait for one
// session fail together, not one after another.
func TestRedisPausedIs503WithinTheTimeout(t *testing.T) {
	onEach(t, func(t *testing.T, r *redistest.Server) {
		for _, crowd := range []int{1, 20} {
			st := store.New(r.Pool(t, 4), store.Options{Timeout: time.Second})
			s := newSiteOn(t, st, middleware.Options{LockWait: time.Minute}, app())
			v := s.visitor(t)
			r.Pause(t)
			began := time.Now()
			var waiting sync.WaitGroup
			for range crowd {
				waiting.Go(func() { v.get(s.URL+"/add").want(t, 503, "*") })
			}
			waiting.Wait()
			if took := time.Since(began); took > 1250*time.Millisecond && !r.IsReal() {
				t.Errorf("%d requests took %v", crowd, took)
			}
			r.Resume(t)
			// The command of a failed request may still arrive and take the lock; it is
			// swept out long before its lease ends.
			v.get(s.URL+"/add").want(t, 200, "2")
		}
	})
}

// P8: If Redis runs out of memory after a request has acquired the session and before it commits, the session does
// not stay locked for a lease.
func TestRedisOutOfMemoryAtTheCommitFreesTheLock(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	s, v := begun(t, r, middleware.Options{}, app())
	_, lock := keysOf(v.get(s.URL + "/id").body)
	free := v.hold(s.URL + "/pause")
	r.Do(t, "CONFIG", "SET", "maxmemory", "1")
	a := free()
	a.want(t, 503, "*")
	if r.Exists(t, lock) {
		t.Error("the lock is still there")
	}
	if strings.Contains(a.body, "maxmemory") || len(s.log.Lines("OOM")) != 1 {
		t.Errorf("the reason must be in the log and not in the response: %q\n%s", a.body, s.log)
	}
	r.Do(t, "CONFIG", "SET", "maxmemory", "0")
	v.get(s.URL+"/get").want(t, 200, "1")
}

// P8: If Redis is full, only requests that must store something fail. A request that only reads is served, in every
// mode, and a logout succeeds.
func TestAFullRedisServesReadersAndLogouts(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	modes := map[string]middleware.Mode{"/id": middleware.ReadOnly}
	s := newSite(t, r.Pool(t, 4), middleware.Options{Mode: byPath(modes)}, app())
	ann, bob := newVisitor(t), newVisitor(t)
	ann.get(s.URL+"/add").want(t, 200, "1")
	bob.get(s.URL+"/add").want(t, 200, "1")
	id := ann.get(s.URL + "/id").body
	old := ann.cookies(s)

	r.Fill(t)
	ann.get(s.URL+"/get").want(t, 200, "1")
	ann.get(s.URL+"/id").want(t, 200, id)
	for what, a := range map[string]answer{
		"a write":       ann.get(s.URL + "/add"),
		"a login":       ann.get(s.URL + "/login"),
		"a new session": newVisitor(t).get(s.URL + "/add"),
	} {
		if a.StatusCode != 503 || a.sets() || strings.Contains(a.body, "OOM") {
			t.Errorf("%s: %d %q, cookie %v", what, a.StatusCode, a.body, a.sets())
		}
	}
	if len(s.log.Lines("it is full")) != 3 {
		t.Errorf("the log does not say three times that Redis is full:\n%s", s.log)
	}
	newVisitor(t).get(s.URL+"/get").want(t, 200, "0")
	ann.get(s.URL+"/get").want(t, 200, "1") // a login that failed has ended nothing

	ann.get(s.URL+"/logout").want(t, 200, "")
	thief := with(t, old...)
	thief.get(s.URL+"/get").want(t, 200, "0")

	r.Empty(t)
	bob.get(s.URL+"/add").want(t, 200, "2")
	ann.get(s.URL+"/add").want(t, 200, "1")
}

// P8: Redis falls silent while requests hold the session or wait for it. Whatever they do, and
// wherever they are in line, all get a response within one and a quarter Timeouts.
func TestRedisFallsSilentAndAllAreAnsweredInTime(t *testing.T) {
	t.Parallel()
	const timeout = 400 * time.Millisecond
	const maxBytes = 4 << 10 // which /large exceeds
	for name, paths := range map[string][]string{
		"one":                                  {"/add"},
		"a read":                               {"/get"},
		"a login":                              {"/login"},
		"a logout":                             {"/logout"},
		"a panic":                              {"/panic"},
		"a crowd":                              {"/add", "/add", "/add", "/add", "/add"},
		"a crowd of readers":                   {"/get", "/get", "/get", "/get", "/get"},
		"a login last in a crowd":              {"/add", "/add", "/add", "/login"},
		"a panic last in a crowd":              {"/add", "/add", "/add", "/panic"},
		"a panic amid a crowd":                 {"/add", "/add", "/panic", "/add", "/add"},
		"a session too large, last in a crowd": {"/add", "/add", "/large"},
		"a slow request amid a crowd":          {"/add", "/slow", "/add", "/add", "/add"},
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			busy, free := make(chan struct{}), make(chan struct{})
			first := sync.OnceFunc(func() {
				close(busy)
				<-free
			})
			mux := app()
			mux.HandleFunc("/panic", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
			handle(mux, "/large", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) {
				s.Set("large", make([]byte, maxBytes))
			})
			handle(mux, "/slow", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) {
				<-time.After(30 * time.Millisecond) // longer than requests run ahead of Redis
				s.Set("slow", 1)
			})
			mux.HandleFunc("/first/{path}", func(w http.ResponseWriter, r *http.Request) {
				first()
				http.StripPrefix("/first", mux).ServeHTTP(w, r)
			})
			st := store.New(r.Pool(t, 8), store.Options{Lease: 5 * time.Second, Timeout: timeout})
			s := newSiteOn(t, st, middleware.Options{LockWait: time.Minute, MaxBytes: maxBytes}, mux)
			v := s.visitor(t)

			var began time.Time // of the silence
			var line sync.WaitGroup
			for i, path := range paths {
				if i == 0 {
					path = "/first" + path
				}
				line.Go(func() {
					a := v.post(s.URL + path)
					if took := time.Since(began); took > timeout*5/4 {
						t.Errorf("request %d, %s, was answered %v after Redis fell silent", i, path, took)
					}
					if a.err == nil && a.StatusCode < 400 {
						t.Errorf("request %d, %s: status %d, although Redis is silent", i, path, a.StatusCode)
					}
				})
				synctest.Wait() // the next one is behind it
			}
			<-busy
			r.Pause(t)
			began = time.Now()
			close(free)
			line.Wait()
			r.Resume(t)
			redistest.Elapse(time.Second)
			v.get(s.URL+"/nothing").want(t, 200, "")
		})
	}
}
