package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// An overdueContext has a deadline that passes when the handler says so.
type overdueContext struct {
	context.Context
	over chan struct{}
}

func (c overdueContext) Done() <-chan struct{} { return c.over }
func (c overdueContext) Err() error {
	select {
	case <-c.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

type overKey struct{}

// letDeadlinePass waits until req's handler knows it, too.
func letDeadlinePass(req *http.Request) {
	close(req.Context().Value(overKey{}).(chan struct{}))
	<-req.Context().Done()
}

// withDeadlines serves mux with sessions inside a handler that sets deadlines.
func withDeadlines(t *testing.T, r *redistest.Server, o middleware.Options, mux http.Handler) *site {
	t.Helper()
	return around(t, r, o, func(sessions func(http.Handler) http.Handler) http.Handler {
		inner := sessions(mux)
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			over := make(chan struct{})
			ctx := overdueContext{context.WithValue(req.Context(), overKey{}, over), over}
			inner.ServeHTTP(w, req.WithContext(ctx))
		})
	})
}

// P2: whoever set a request's deadline has answered by the time it is over. So nothing of the
// request is saved, however it ends, and it sets no cookie.
func TestARequestWhoseDeadlineIsOverSavesNothing(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		changes := map[string]func(s *session.Session){
			"set":    func(s *session.Session) { s.Set("n", -1) },
			"login":  func(s *session.Session) { s.Renew() },
			"logout": func(s *session.Session) { s.Destroy() },
		}
		endings := map[string]func(w http.ResponseWriter, req *http.Request){
			"end":   func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "done") },
			"flush": func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() },
			"commit": func(_ http.ResponseWriter, req *http.Request) {
				if err := session.FromContext(req.Context()).Commit(req.Context()); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Commit returned %v", err)
				}
			},
		}
		for _, mode := range []middleware.Mode{middleware.Exclusive, middleware.Lazy} {
			mux := http.NewServeMux()
			for what, change := range changes {
				for how, end := range endings {
					mux.HandleFunc("/"+what+"/"+how, func(w http.ResponseWriter, req *http.Request) {
						s, err := session.Start(req.Context())
						if err != nil {
							t.Error(err)
							return
						}
						change(s)
						letDeadlinePass(req)
						end(w, req)
					})
				}
			}
			mux.HandleFunc("/count", func(w http.ResponseWriter, req *http.Request) {
				s, err := session.Start(req.Context())
				if err != nil {
					t.Error(err)
					return
				}
				n, _ := session.Get[int](s, "n")
				s.Set("n", n+1)
				fmt.Fprint(w, n+1)
			})
			s := withDeadlines(t, r, middleware.Options{Mode: func(*http.Request) middleware.Mode { return mode }}, mux)
			v := newVisitor(t)
			v.get(s.URL+"/count").want(t, 200, "1")
			count := 1
			for what := range changes {
				for how := range endings {
					for name, visitor := range map[string]*visitor{"known": v, "new": newVisitor(t)} {
						a := visitor.get(s.URL + "/" + what + "/" + how)
						a.want(t, 503, "*")
						if a.sets() {
							t.Errorf("%s %s, %s visitor: %v", what, how, name, a.Header)
						}
					}
					count++
					v.get(s.URL+"/count").want(t, 200, fmt.Sprint(count))
				}
			}
		}
	})
}

// P2: who has changed nothing loses nothing, and is answered as ever.
func TestARequestWhoseDeadlineIsOverMayStillRead(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	mux := app()
	mux.HandleFunc("/read", func(w http.ResponseWriter, req *http.Request) {
		n, _ := session.Get[int](session.FromContext(req.Context()), "n")
		letDeadlinePass(req)
		w.WriteHeader(http.StatusGatewayTimeout)
		fmt.Fprint(w, n)
	})
	s := withDeadlines(t, r, middleware.Options{}, mux)
	v := newVisitor(t)
	v.get(s.URL+"/add").want(t, 200, "1")
	v.get(s.URL+"/read").want(t, 504, "1")
	v.get(s.URL+"/add").want(t, 200, "2")
}

// P2: around a real http.TimeoutHandler, a login that was answered with "too slow" did not happen.
func TestALoginThatTimedOutDidNotHappen(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	ended := make(chan struct{}, 1)
	mux := app()
	mux.HandleFunc("/slow-login", func(_ http.ResponseWriter, req *http.Request) {
		s := session.FromContext(req.Context())
		s.Renew()
		s.Set("n", 100)
		<-req.Context().Done()
	})
	s := around(t, r, middleware.Options{}, func(sessions func(http.Handler) http.Handler) http.Handler {
		quick := sessions(mux)
		slow := http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			defer func() { ended <- struct{}{} }()
			quick.ServeHTTP(w, req)
		}), 200*time.Millisecond, "too slow")
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if strings.HasPrefix(req.URL.Path, "/slow") {
				slow.ServeHTTP(w, req)
				return
			}
			quick.ServeHTTP(w, req)
		})
	})
	v := newVisitor(t)
	v.get(s.URL+"/add").want(t, 200, "1")
	v.post(s.URL+"/slow-login").want(t, 503, "too slow")
	<-ended
	v.get(s.URL+"/add").want(t, 200, "2")
}
