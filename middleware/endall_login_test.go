package middleware_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// newResetSite serves /forgotten in a mode: it ends all of ann's sessions, and logs her in, as after a forgotten password.
// before and after are what else the handler does with its session.
func newResetSite(t *testing.T, r *redistest.Server, mode middleware.Mode, before, after func(context.Context, *session.Session)) *site {
	t.Helper()
	var s *site
	mux := users(func() *middleware.Sessions { return s.sessions })
	handle(mux, "/forgotten", func(own *session.Session, _ http.ResponseWriter, req *http.Request) {
		time.Sleep(time.Millisecond) // the handler checks whether the user may log in
		before(req.Context(), own)
		_, err := s.sessions.EndAll(req.Context(), "ann")
		must(t, err)
		own.Login("ann")
		after(req.Context(), own)
	})
	s = newSite(t, r.Pool(t, 8), middleware.Options{Mode: byPath(map[string]middleware.Mode{"/forgotten": mode})}, mux)
	return s
}

func nothing(context.Context, *session.Session) {}

// A request that ends all sessions of a user itself may log the user in, whoever was logged in before. If its own session
// was one of those, another one begins, with the same values.
func TestARequestThatEndsAllMayLogIn(t *testing.T) {
	for _, mode := range []middleware.Mode{middleware.Exclusive, middleware.Optimistic} {
		for _, before := range []string{"/user", "/login/ann", "/login/bob"} {
			inFakeTime(t, mode.String()+before, func(t *testing.T, r *redistest.Server) {
				s := newResetSite(t, r, mode, nothing, nothing)
				thief, owner, other := visitAs(t, s, "ann"), s.visitor(t), visitAs(t, s, "ann")
				owner.get(s.URL+before).want(t, 200, "*")
				count := owner.get(s.URL + "/get").body
				owner.get(s.URL+"/forgotten").want(t, 200, "")
				wantUsers(t, s, map[*visitor]string{thief: "", owner: "ann", other: ""})
				owner.get(s.URL+"/get").want(t, 200, count)
				for _, key := range r.Keys(t) {
					if strings.HasSuffix(key, ".lock") {
						t.Errorf("%s is left", key)
					}
				}
				other.get(s.URL+"/forgotten").want(t, 200, "")
				wantUsers(t, s, map[*visitor]string{owner: "", other: "ann"})
			})
		}
	}
}

// A login that is committed before or after is no exception: the user has one session in the end.
func TestARequestThatEndsAllMayLogInTwice(t *testing.T) {
	again := func(ctx context.Context, own *session.Session) {
		must(t, own.Commit(ctx))
		must(t, own.Reopen(ctx))
		own.Login("ann")
	}
	before := func(ctx context.Context, own *session.Session) {
		own.Login("ann")
		must(t, own.Commit(ctx))
		must(t, own.Reopen(ctx))
	}
	for name, does := range map[string][2]func(context.Context, *session.Session){
		"before": {before, nothing}, "after": {nothing, again}, "both": {before, again},
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			s := newResetSite(t, r, middleware.Exclusive, does[0], does[1])
			v := visitAs(t, s, "ann")
			v.get(s.URL+"/forgotten").want(t, 200, "")
			wantUsers(t, s, map[*visitor]string{v: "ann"})
			if all, err := s.sessions.List(t.Context(), "ann"); len(all) != 1 || err != nil {
				t.Errorf("ann has the sessions %v, error %v", all, err)
			}
		})
	}
}

// P16: a stream whose request has begun another session in place of its own ends with the other one.
func TestAStreamEndsWithTheSessionThatItsLoginHasBegun(t *testing.T) {
	for _, mode := range []middleware.Mode{middleware.Exclusive, middleware.Optimistic} {
		inFakeTime(t, mode.String(), func(t *testing.T, r *redistest.Server) {
			s := newResetSite(t, r, mode, nothing, func(ctx context.Context, own *session.Session) {
				must(t, own.Commit(ctx))
				<-ctx.Done()
				if cause := context.Cause(ctx); !errors.Is(cause, session.ErrEnded) {
					t.Errorf("the stream has ended with %v", cause)
				}
			})
			v := visitAs(t, s, "ann")
			stream := v.start(s.URL + "/forgotten")
			time.Sleep(5 * time.Second) // longer than it takes until an end is noticed
			select {
			case got := <-stream:
				t.Fatalf("the stream was over at once: %s", got.Status)
			default:
			}
			_, err := s.sessions.EndAll(t.Context(), "ann")
			must(t, err)
			(<-stream).want(t, 200, "*")
			wantUsers(t, s, map[*visitor]string{v: ""})
		})
	}
}

// A request that spares its own session gives it a new ID by a Login: the session is not alive under the old one, too.
func TestALoginAfterAnEndAllOfTheOthersIsARenewal(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		var s *site
		mux := users(func() *middleware.Sessions { return s.sessions })
		handle(mux, "/new-password", func(own *session.Session, _ http.ResponseWriter, req *http.Request) {
			_, err := s.sessions.EndAll(req.Context(), "ann", own.ID())
			must(t, err)
			own.Login("ann")
		})
		s = newSite(t, r.Pool(t, 8), middleware.Options{}, mux)
		v := visitAs(t, s, "ann")
		thief := with(t, v.cookies(s)...)
		v.get(s.URL+"/new-password").want(t, 200, "*")
		wantUsers(t, s, map[*visitor]string{v: "ann", thief: ""})
	})
}

// Only an EndAll of the same user that has succeeded lets its request log in: another one says nothing about the
// password that the request has checked.
func TestOnlyTheUsersOwnEndAllLetsItsRequestLogIn(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		var s *site
		var laptop *visitor
		var endAll func(context.Context) error
		mux := users(func() *middleware.Sessions { return s.sessions })
		handle(mux, "/slow-login", func(own *session.Session, _ http.ResponseWriter, req *http.Request) {
			time.Sleep(time.Millisecond) // the password was right, and is changed by another request now
			laptop.get(s.URL+"/end/others").want(t, 200, "0")
			_ = endAll(req.Context())
			own.Login("ann")
		})
		s = newSite(t, r.Pool(t, 8), middleware.Options{}, mux)
		other := steady
		other.Prefix = "other:"
		elsewhere := newSiteOn(t, store.New(r.Pool(t, 8), other), middleware.Options{}, mux)
		laptop = visitAs(t, s, "ann")
		for what, end := range map[string]func(context.Context) (int, error){
			"of another user": func(ctx context.Context) (int, error) { return s.sessions.EndAll(ctx, "bob") },
			"of no ID":        func(ctx context.Context) (int, error) { return s.sessions.EndAll(ctx, "ann", "no ID") },
			"that Redis never gets": func(ctx context.Context) (int, error) {
				ended, end := context.WithCancel(ctx)
				end()
				return s.sessions.EndAll(ended, "ann")
			},
			"in another store": func(ctx context.Context) (int, error) { return elsewhere.sessions.EndAll(ctx, "ann") },
		} {
			endAll = func(ctx context.Context) error { _, err := end(ctx); return err }
			thief := newVisitor(t)
			t.Log(what)
			thief.get(s.URL+"/slow-login").want(t, http.StatusConflict, "*")
			wantUsers(t, s, map[*visitor]string{laptop: "ann", thief: ""})
		}
	})
}
