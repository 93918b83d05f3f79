package middleware_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/logtest"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
)

// An office is a process that has requests and jobs.

type office struct {
	*site
	*middleware.Sessions
	log *logtest.Buffer
}

func newOffice(t *testing.T, st *store.Store, o middleware.Options, mux http.Handler) *office {
	t.Helper()
	log := &logtest.Buffer{}
	o.Logger = log.Logger()
	o.Keys, o.Cookie.Name = [][]byte{testKey}, "sid"
	s, err := middleware.New(st, o)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s.Handler(mux))
	t.Cleanup(srv.Close)
	return &office{&site{Server: srv, log: log}, s, log}
}

// begins begins a session that has n = 1, and returns its id.

func (o *office) begins(t *testing.T) (v *visitor, id string) {
	t.Helper()
	v = newVisitor(t)
	v.get(o.URL+"/add").want(t, 200, "1")
	return v, v.get(o.URL + "/id").body
}

func adding(s *session.Session) error { add(s); return nil }

// P1: jobs and requests of one session, in two processes, run one after another. Nothing is lost.

func TestUpdatesAndRequestsLoseNothing(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		var offices []*office
		for range 2 {
			offices = append(offices, newOffice(t, store.New(r.Pool(t, 8), store.Options{}), middleware.Options{}, app()))
		}
		v, id := offices[0].begins(t)
		var crowd sync.WaitGroup
		for i := range 30 {
			crowd.Go(func() { must(t, offices[i%2].Update(t.Context(), id, adding)) })
			crowd.Go(func() { v.get(offices[i/2%2].URL+"/add").want(t, 200, "*") })
		}
		crowd.Wait()
		v.get(offices[1].URL+"/get").want(t, 200, "61")
	})
}

// What Update does with the session is what f says: nil saves, an error or a panic does not.

func TestUpdateSavesUnlessItsFunctionFails(t *testing.T) {
	t.Parallel()
	failed := errors.New("no stock")
	for name, test := range map[string]struct {
		f    func(*session.Session) error
		want error  // of Update; nil with panics
		n    string // what is stored
	}{
		"nil":               {adding, nil, "2"},
		"a read":            {func(s *session.Session) error { s.Len(); return nil }, nil, "1"},
		"an error":          {func(s *session.Session) error { add(s); return failed }, failed, "1"},
		"a failed Set":      {func(s *session.Session) error { add(s); s.Set("x", strings.Repeat("x", 2000)); return nil }, store.ErrTooLarge, "1"},
		"Discard":           {func(s *session.Session) error { add(s); s.Discard(); return nil }, nil, "1"},
		"Discard, then Set": {func(s *session.Session) error { s.Renew(); s.Discard(); add(s); return nil }, nil, "2"},
		"Destroy":           {func(s *session.Session) error { s.Renew(); s.Destroy(); s.Set("n", 7); return nil }, nil, "0"},
		"a panic":           {func(s *session.Session) error { add(s); panic("oh") }, nil, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := redistest.Embedded(t)
			o := newOffice(t, store.New(r.Pool(t, 4), store.Options{}), middleware.Options{MaxBytes: 1000}, app())
			v, id := o.begins(t)
			panicked := true
			func() {
				defer func() { _ = recover() }()
				err := o.Update(t.Context(), id, func(s *session.Session) error {
					if s.ID() != id || s.IsNew() {
						t.Errorf("it is %q, IsNew %v", s.ID(), s.IsNew())
					}
					return test.f(s)
				})
				panicked = false
				if !errors.Is(err, test.want) {
					t.Errorf("Update = %v, want %v", err, test.want)
				}
			}()
			if panicked != (name == "a panic") {
				t.Errorf("panicked: %v", panicked)
			}
			if _, lock := keysOf(id); r.Exists(t, lock) {
				t.Error("the lock is not free")
			}
			v.get(o.URL+"/get").want(t, 200, test.n)
			if lines := o.log.Lines("kind=dropped"); (len(lines) == 1) != (name == "Destroy") {
				t.Errorf("log: %q", lines)
			}
		})
	}
}

// What Update cannot do is a clear error, and nothing is saved of it.

// P4: an ended session stays so.

// What is no id never reaches Redis.

// An Update in a handler that holds the session says at once that it would wait for itself, and the

// handler goes on. Where the handler has given the session back, it is an Update like any other.

// What is left of an Update's session cannot be changed any more, and that shows.

func TestAChangeAfterUpdateIsReported(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		o := newOffice(t, store.New(r.Pool(t, 4), store.Options{}), middleware.Options{}, app())
		v, id := o.begins(t)
		var kept *session.Session
		must(t, o.Update(t.Context(), id, func(s *session.Session) error { kept = s; return nil }))
		kept.Set("n", 7)
		if lines := o.log.Lines("kind=late", "session="+id, "key=n"); len(lines) != 1 {
			t.Errorf("log: %s", o.log)
		}
		v.get(o.URL+"/get").want(t, 200, "1")
	})
}

// P12: neither Update nor Peek is a use of the session. Its idle timeout goes on.

func TestNeitherUpdateNorPeekProlongsTheSession(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		o := newOffice(t, store.New(r.Pool(t, 4), store.Options{}), middleware.Options{}, app())
		v, id := o.begins(t)
		record, _ := keysOf(id)
		const idle = 5 * time.Minute
		r.Do(t, "PEXPIRE", record, idle.Milliseconds())
		for name, use := range map[string]func() error{
			"Update":      func() error { return o.Update(t.Context(), id, adding) },
			"an idle one": func() error { return o.Update(t.Context(), id, func(*session.Session) error { return nil }) },
			"a failed one": func() error {
				_ = o.Update(t.Context(), id, func(*session.Session) error { return errors.New("no") })
				return nil
			},
			"Peek": func() error {
				info, err := o.Peek(t.Context(), id)
				if left := time.Until(info.Expires); info.ID != id || left > idle || left < idle-time.Minute || time.Since(info.Created) > time.Minute {
					t.Errorf("Peek = %+v", info)
				}
				return err
			},
		} {
			must(t, use())
			if ms, err := redis.Int64(r.Do(t, "PTTL", record), nil); err != nil || ms > idle.Milliseconds() || ms < idle.Milliseconds()-60_000 {
				t.Errorf("after %s it has %d ms, %v", name, ms, err)
			}
		}
		v.get(o.URL+"/get").want(t, 200, "2")
		if ms, _ := redis.Int64(r.Do(t, "PTTL", record), nil); ms < (store.DefaultTTL - time.Minute).Milliseconds() {
			t.Errorf("after a request it has %d ms", ms)
		}
	})
}

// P10: Update costs what a request does, two round trips, and Peek one.

func TestUpdateAndPeekAreCounted(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		proxy := redistest.NewProxy(t, r)
		o := newOffice(t, store.New(proxy.Pool(t, 4), store.Options{}), middleware.Options{}, app())
		_, id := o.begins(t)
		must(t, o.Update(t.Context(), id, adding)) // so that the scripts are known
		for name, test := range map[string]struct {
			do    func() error
			trips int
		}{
			"Update": {func() error { return o.Update(t.Context(), id, adding) }, 2},
			"Peek":   {func() error { _, err := o.Peek(t.Context(), id); return err }, 1},
		} {
			proxy.Forget()
			must(t, test.do())
			if trips := proxy.RoundTrips(); trips != test.trips {
				t.Errorf("%s took %d round trips, want %d: %q", name, trips, test.trips, proxy.Commands())
			}
		}
	})
}
