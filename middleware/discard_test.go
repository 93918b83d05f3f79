package middleware_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// What a handler discards is not saved, but its response is sent. Changes after the Discard are saved.
func TestDiscard(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s := siteWith(t, r, middleware.Options{}, "/discard", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
			add(s)
			s.Set("half", make(chan int)) // which would fail the commit
			s.Renew()
			s.Destroy()
			s.Discard()
			if what := req.FormValue("then"); what != "" {
				s.Set(what, 1)
			}
			fmt.Fprint(w, "sorry")
		})
		v := newVisitor(t)
		for range 2 { // of a new visitor, and of one with a session
			a := v.get(s.URL + "/discard")
			a.want(t, 200, "sorry")
			if a.sets() {
				t.Errorf("header %v", a.Header)
			}
			v.get(s.URL+"/add").want(t, 200, "*")
		}
		v.get(s.URL+"/get").want(t, 200, "2")
		v.get(s.URL+"/discard?then=flash").want(t, 200, "sorry")
		v.get(s.URL+"/len").want(t, 200, "2")
	})
}

// P7: Options.Discard keeps half-done work out of the session if the response is an error that was made inside
// Sessions.Handler, for example by a framework's recovery.
func TestAnswersThatAreErrorsSaveNothingIfToldSo(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer func(w http.ResponseWriter, s *session.Session)
		status int
		saved  string
	}{
		"a panic":       {func(http.ResponseWriter, *session.Session) { panic("oh") }, 500, "0"},
		"a 500":         {func(w http.ResponseWriter, _ *session.Session) { http.Error(w, "oh", 500) }, 500, "0"},
		"a flushed 500": {func(w http.ResponseWriter, _ *session.Session) { w.WriteHeader(500); w.(http.Flusher).Flush() }, 500, "0"},
		"a long 500":    {func(w http.ResponseWriter, _ *session.Session) { http.Error(w, strings.Repeat("oh", 1<<16), 500) }, 500, "0"},
		"a 404":         {func(w http.ResponseWriter, _ *session.Session) { http.Error(w, "oh", 404) }, 404, "1"},
		"nothing":       {func(http.ResponseWriter, *session.Session) {}, 200, "1"},
		"a 500 and Commit": {func(w http.ResponseWriter, s *session.Session) {
			w.WriteHeader(500)
			must(t, s.Commit(context.Background()))
		}, 500, "1"},
		"a 500, reopened": {func(w http.ResponseWriter, s *session.Session) {
			w.WriteHeader(500)
			must(t, s.Commit(context.Background()))
			w.(http.Flusher).Flush()
			must(t, s.Reopen(context.Background()))
			add(s)
		}, 500, "1"},
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			mux := app()
			mux.Handle("/half", recoverer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				s := session.FromContext(req.Context())
				add(s)
				test.answer(w, s)
			})))
			s := newSite(t, r.Pool(t, 4), middleware.Options{Discard: func(status int) bool { return status >= 500 }}, mux)
			v := newVisitor(t)
			v.get(s.URL+"/half").want(t, test.status, "*")
			v.get(s.URL+"/get").want(t, 200, test.saved)
		})
	}
}
