package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

func TestASecondCommitThatFails(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		handle(mux, "/twice", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
			s.Set("n", 5)
			must(t, s.Commit(req.Context()))
			must(t, s.Reopen(req.Context()))
			s.Set("n", 6)
			loseLock(t, r, req)
			fmt.Fprint(w, "all is well")
		})
		s := newSite(t, r.Pool(t, 4), middleware.Options{}, mux)
		v := newVisitor(t)
		for cookies := range 2 { // with a session, and without
			if cookies == 0 {
				v.get(s.URL+"/add").want(t, 200, "1")
			} else {
				v = newVisitor(t)
			}
			a := v.get(s.URL + "/twice")
			a.want(t, 503, notAllSaved)
			if len(a.Header["Set-Cookie"]) != cookies || a.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("header %v", a.Header)
			}
			v.get(s.URL+"/get").want(t, 200, "5")
		}
	})
}

func TestAPanicAfterReopen(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		handle(mux, "/panic", func(s *session.Session, _ http.ResponseWriter, req *http.Request) {
			s.Set("n", 5)
			must(t, s.Commit(req.Context()))
			must(t, s.Reopen(req.Context()))
			s.Set("n", 6)
			panic(http.ErrAbortHandler)
		})
		s, v := begun(t, r, middleware.Options{LockWait: time.Second}, mux)
		if a := v.post(s.URL + "/panic"); a.err == nil {
			t.Errorf("answered with %d", a.StatusCode)
		}
		v.get(s.URL+"/add").want(t, 200, "6")
	})
}

func TestALockThatIsLostAfterReopenEndsTheContext(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		handle(mux, "/held", func(s *session.Session, _ http.ResponseWriter, req *http.Request) {
			must(t, s.Commit(req.Context()))
			must(t, s.Reopen(req.Context()))
			s.Set("n", 5)
			<-req.Context().Done() // MaxHold is over
			if cause := context.Cause(req.Context()); !errors.Is(cause, store.ErrLost) {
				t.Errorf("cause %v", cause)
			}
		})
		s, v := begun(t, r, middleware.Options{MaxHold: 200 * time.Millisecond}, mux)
		v.get(s.URL+"/held").want(t, 503, "*")
		v.get(s.URL+"/add").want(t, 200, "2")
	})
}
