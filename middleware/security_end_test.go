package middleware_test

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// ASVS 7.4.1: a request that had read the session before the logout, without a lock, finishes
// with what it has read. The next one finds nothing.
func TestAReadOnlyRequestUnderWayOutlivesTheLogout(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		var logout, next answer
		var s *site
		var v, old *visitor
		handle(mux, "/slow-get", func(own *session.Session, w http.ResponseWriter, _ *http.Request) {
			logout, next = v.get(s.URL+"/logout"), old.get(s.URL+"/get")
			n, _ := session.Get[int](own, "n")
			fmt.Fprint(w, n)
		})
		s, v = begun(t, r, middleware.Options{Mode: byPath(map[string]middleware.Mode{
			"/get": middleware.ReadOnly, "/slow-get": middleware.ReadOnly,
		})}, mux)
		old = with(t, v.cookies(s)...)
		underWay := old.get(s.URL + "/slow-get")
		logout.want(t, 200, "")
		next.want(t, 200, "0")
		underWay.want(t, 200, "1")
		if underWay.sets() {
			t.Errorf("its answer sets a cookie: %v", underWay.Header)
		}
	})
}

// ASVS 7.4.5: with new keys all sessions are over, in each process that has them. One that still
// has the old keys goes on with the sessions as they were.
func TestNewKeysEndAllSessions(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		site := func(key string) *site {
			return newSite(t, r.Pool(t, 4), middleware.Options{Keys: [][]byte{bytes.Repeat([]byte(key), 32)}}, app())
		}
		before, after := site("o"), site("n")
		v := newVisitor(t)
		v.get(before.URL+"/login").want(t, 200, "")
		old := with(t, v.cookies(before)...)
		old.get(after.URL+"/len").want(t, 200, "0")
		old.get(before.URL+"/len").want(t, 200, "1")
	})
}

// ASVS 7.4.5: an administrator with nothing but redis-cli deletes the record. A request
// that is under way can neither write the session back nor move it to a new id.
func TestDeletingTheRecordEndsASession(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		for _, change := range []func(*session.Session){func(s *session.Session) { s.Set("n", 500) }, (*session.Session).Renew} {
			mux := app()
			handle(mux, "/change", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) {
				r.Do(t, "DEL", recordOf(s.ID()))
				change(s)
			})
			s, v := begun(t, r, middleware.Options{}, mux)
			v.get(s.URL+"/change").want(t, 503, "*")
			v.get(s.URL+"/len").want(t, 200, "0")
			if synctest.Wait(); len(r.Keys(t)) != 0 {
				t.Errorf("these are left: %q", r.Keys(t))
			}
		}
	})
}
