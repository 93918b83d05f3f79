package middleware_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/logtest"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// newSessions returns sessions whose cookie is called sid.
func newSessions(t *testing.T, r *redistest.Server, o middleware.Options) *middleware.Sessions {
	t.Helper()
	o.Keys, o.Cookie.Name = [][]byte{testKey}, "sid"
	s, err := middleware.New(store.New(r.Pool(t, 4), store.Options{}), o)
	must(t, err)
	return s
}

// routes are an application each of whose routes has a mode of its own.
func routes(s *middleware.Sessions) *http.ServeMux {
	plain := app()
	mux := http.NewServeMux()
	mux.Handle("/add", plain) // as Options.Mode says
	mux.Handle("/exclusive/add", s.Exclusive(http.StripPrefix("/exclusive", plain)))
	mux.Handle("/readonly/{what}", s.ReadOnly(http.StripPrefix("/readonly", plain)))
	mux.Handle("/optimistic/{what}", s.Optimistic(http.StripPrefix("/optimistic", plain)))
	mux.Handle("/lazy", s.Lazy(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		own, err := session.Start(r.Context())
		if err != nil {
			http.Error(w, err.Error(), middleware.Status(err))
			return
		}
		fmt.Fprint(w, own.Len())
	})))
	mux.Handle("/none", s.None(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })))
	return mux
}

// A route's mode counts before its session is opened: what only reads waits for nobody.
func TestARouteHasAModeOfItsOwn(t *testing.T) {
	t.Parallel()
	lazy := func(*http.Request) middleware.Mode { return middleware.Lazy }
	for name, test := range map[string]struct {
		mode func(*http.Request) middleware.Mode
		wrap func(*middleware.Sessions, http.Handler) http.Handler
	}{
		"around a ServeMux": {nil, (*middleware.Sessions).Handler},
		"Lazy around another router": {lazy, func(s *middleware.Sessions, mux http.Handler) http.Handler {
			return s.Handler(http.HandlerFunc(mux.ServeHTTP))
		}},
		"the routes alone": {nil, func(_ *middleware.Sessions, mux http.Handler) http.Handler { return mux }},
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			s := newSessions(t, r, middleware.Options{Mode: test.mode, LockWait: 50 * time.Millisecond})
			none := middleware.Options{Mode: func(*http.Request) middleware.Mode { return middleware.None }}
			site := newSite(t, r.Pool(t, 1), none, test.wrap(s, routes(s)))

			v := newVisitor(t)
			v.get(site.URL+"/exclusive/add").want(t, 200, "1")
			v.get(site.URL+"/lazy").want(t, 200, "1")
			v.get(site.URL+"/none").want(t, 200, "ok")
			v.get(site.URL+"/readonly/add").want(t, 500, "*")
			v.get(site.URL+"/optimistic/get").want(t, 200, "1")
			v.get(site.URL+"/optimistic/add").want(t, 200, "2")
			v.post(site.URL+"/optimistic/add").want(t, 500, "*")
			holdElsewhere(t, r)
			v.get(site.URL+"/readonly/get").want(t, 200, "2")
			v.get(site.URL+"/optimistic/get").want(t, 200, "2")
			v.get(site.URL+"/optimistic/add").want(t, 503, "*")
			v.get(site.URL+"/none").want(t, 200, "ok")
			v.get(site.URL+"/exclusive/add").want(t, 503, "*")
			v.get(site.URL+"/lazy").want(t, 503, "*")
		})
	}
}

// holdElsewhere holds the one session that there is, as another process would.
func holdElsewhere(t *testing.T, r *redistest.Server) {
	t.Helper()
	keys := r.Keys(t)
	if len(keys) != 1 {
		t.Fatalf("there are the keys %q, want one session", keys)
	}
	id := strings.TrimSuffix(strings.TrimPrefix(keys[0], "latchkey:{"), "}")
	hold, err := store.New(r.Pool(t, 1), store.Options{}).Take(t.Context(), id, store.Terms{})
	must(t, err)
	t.Cleanup(func() { hold.Release(t.Context()) })
}

// Where a session was opened before its route was known, in another mode than the route's, the
// route cannot keep what its mode promises, and says so.
func TestAModeThatComesTooLateIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		var mode middleware.Mode
		s := newSessions(t, r, middleware.Options{Mode: func(*http.Request) middleware.Mode { return mode }})
		nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
		var of http.Handler
		handler := s.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { of.ServeHTTP(w, r) }))
		wrap := []func(http.Handler) http.Handler{s.Exclusive, s.ReadOnly, s.Optimistic, s.Lazy, s.None}
		for m := middleware.Exclusive; m <= middleware.None; m++ {
			for route := middleware.Exclusive; route <= middleware.None; route++ {
				mode, of = m, wrap[route](nothing)
				want := http.StatusInternalServerError
				if m == middleware.Lazy || m == middleware.None || m == route || m == middleware.Exclusive && route == middleware.Lazy {
					want = http.StatusOK
				}
				if got := serveOnce(t, handler).Code; got != want {
					t.Errorf("opened as %v, the route is %v: %d, want %d", m, route, got, want)
				}
			}
		}
	})
}

// Of an application with many routes, the log says which one it is. A mode that does not exist is
// refused, too.
func TestTheLogSaysWhichModeIsWrong(t *testing.T) {
	t.Parallel()
	for says, mode := range map[string]middleware.Mode{
		"the route / is ReadOnly, its session was opened as Exclusive": middleware.Exclusive,
		"Mode(-1)": -1,
		"Mode(5)":  middleware.None + 1,
	} {
		log := &logtest.Buffer{}
		s := newSessions(t, redistest.Embedded(t), middleware.Options{Logger: log.Logger(),
			Mode: func(*http.Request) middleware.Mode { return mode }})
		mux := http.NewServeMux()
		mux.Handle("/", s.ReadOnly(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Errorf("%s: the handler ran", says) })))
		code := serveOnce(t, s.Handler(http.HandlerFunc(mux.ServeHTTP))).Code // so Handler cannot see the mux
		if code != 500 || len(log.Lines(says)) != 1 {
			t.Errorf("%s: status %d; log:\n%s", says, code, log)
		}
	}
}
