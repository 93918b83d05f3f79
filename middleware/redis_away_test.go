package middleware_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
)

// P8: without Redis there is an error, rather than an empty session; and with Redis
// all works again, without anyone's help.
func TestRedisStoppedIs503AndComesBack(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Server) {
		modes := map[string]middleware.Mode{"/add": middleware.Exclusive, "/get": middleware.ReadOnly}
		s, v := begun(t, r, middleware.Options{Mode: byPath(modes)}, app())
		r.Stop(t)
		for path := range modes {
			v.get(s.URL+path).want(t, 503, "*")
		}
		newVisitor(t).get(s.URL+"/add").want(t, 503, "*") // nor a cookie for a session that was not saved
		newVisitor(t).get(s.URL+"/get").want(t, 200, "0") // has no session, and needs no Redis
		r.Restart(t)
		// Restarted empty: the session is gone, and a new one begins under a new id.
		v.get(s.URL+"/get").want(t, 200, "0")
		a := v.get(s.URL + "/add")
		a.want(t, 200, "1")
		if !a.sets() {
			t.Error("the unknown id was adopted")
		}
		v.get(s.URL+"/add").want(t, 200, "2")
	})
}

// P8: a Redis that hangs costs the timeout and a quarter, not more. Requests that wait for one
// session fail together, not one after another.
func TestRedisPausedIs503WithinTheTimeout(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Server) {
		for _, crowd := range []int{1, 20} {
			st := store.New(r.Pool(t, 4), store.Options{Timeout: time.Second})
			s := newSiteOn(t, st, middleware.Options{LockWait: time.Minute}, app())
			v := newVisitor(t)
			v.get(s.URL+"/add").want(t, 200, "1")
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

// P8: scripts that Redis has forgotten are sent again.
func TestScriptFlushUnderLoad(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Server) {
		s, v := begun(t, r, middleware.Options{}, app())
		var crowd sync.WaitGroup
		for i := range 60 {
			crowd.Go(func() {
				if i%10 == 0 {
					r.Do(t, "SCRIPT", "FLUSH")
				}
				v.get(fmt.Sprintf("%s/set/k%d", s.URL, i)).want(t, 200, "")
			})
		}
		crowd.Wait()
		v.get(s.URL+"/len").want(t, 200, "61")
	})
}

// P8: when Redis may not write, nothing is answered as saved, the lock does not
// stay, and all is well afterwards.
func TestRedisThatRefusesWrites(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	for name, switches := range map[string]struct{ off, on []any }{
		"out of memory": {[]any{"SET", "maxmemory", "1"}, []any{"SET", "maxmemory", "0"}},
		"read-only":     {[]any{"127.0.0.1", "1"}, []any{"NO", "ONE"}},
	} {
		t.Run(name, func(t *testing.T) {
			command := map[string]string{"out of memory": "CONFIG", "read-only": "REPLICAOF"}[name]
			s, v := begun(t, r, middleware.Options{}, app())
			r.Do(t, command, switches.off...)
			v.get(s.URL+"/add").want(t, 503, "*")
			a := newVisitor(t).get(s.URL + "/add")
			a.want(t, 503, "*")
			if a.sets() {
				t.Error("a cookie for a session that was not saved")
			}
			r.Do(t, command, switches.on...)
			v.get(s.URL+"/add").want(t, 200, "2")
		})
	}
}

// P8: memory that runs out between the take and the commit does not leave the
// session shut for a lease.
func TestRedisOutOfMemoryAtTheCommitFreesTheLock(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	mux := app()
	busy, free := pausing(mux)
	s, v := begun(t, r, middleware.Options{}, mux)
	_, lock := keysOf(v.get(s.URL + "/id").body)
	done := v.start(s.URL + "/pause")
	<-busy
	r.Do(t, "CONFIG", "SET", "maxmemory", "1")
	close(free)
	a := <-done
	a.want(t, 503, "*")
	if r.Exists(t, lock) {
		t.Error("the lock is still there")
	}
	if strings.Contains(a.body, "maxmemory") || len(s.log.Lines("OOM")) != 1 {
		t.Errorf("the reason belongs into the log, not into the answer: %q\n%s", a.body, s.log)
	}
	r.Do(t, "CONFIG", "SET", "maxmemory", "0")
	v.get(s.URL+"/get").want(t, 200, "1")
}
