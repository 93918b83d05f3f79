package middleware_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// P4: a script was sent before the visitor had any cookie, and is answered after the login. It begins a guest's
// session, which does not take the login away.
func TestAFirstScriptDoesNotUndoALogin(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s := newUserSite(t, r, middleware.Options{})
		v := newVisitor(t)
		script := newVisitor(t).background("POST", s.URL+"/add") // without a cookie
		v.navigate("POST", s.URL+"/login/ann").want(t, 200, "")
		v.Jar.SetCookies(script.Request.URL, script.Cookies())
		v.get(s.URL+"/user").want(t, 200, "ann")
	})
}

// P4: a session that was ended elsewhere leaves its cookie in the browser. The visitor goes on as a guest, and each
// request asks Redis for the guest's session only, once the process knows that the other one is dead.
func TestADeadMembersCookieCostsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		proxy := redistest.NewProxy(t, r)
		var s *site
		s = newSite(t, proxy.Pool(t, 4), middleware.Options{}, users(func() *middleware.Sessions { return s.sessions }))
		v := newVisitor(t)
		v.get(s.URL+"/login/ann").want(t, 200, "")
		id := v.get(s.URL + "/id").body
		must(t, s.sessions.End(t.Context(), id))
		v.background("POST", s.URL+"/add").want(t, 200, "1")
		v.get(s.URL+"/get").want(t, 200, "1")
		if n := len(v.cookies(s)); n != 2 {
			t.Fatalf("the visitor has %d cookies, want both", n)
		}
		for range 3 {
			proxy.Forget()
			v.background("POST", s.URL+"/add").want(t, 200, "*")
			if n := proxy.RoundTrips(); n != 2 {
				t.Errorf("%d round trips, want 2: acquire and commit", n)
			}
		}
		redistest.Elapse(10 * time.Minute)
		proxy.Forget()
		v.get(s.URL+"/get").want(t, 200, "4")
		if n := proxy.RoundTrips(); n < 3 {
			t.Errorf("%d round trips: the dead cookie is remembered for longer than a few minutes", n)
		}
	})
}

// P4: A logout with a member's ID that has moved ends the session that the ID has become: the visitor meant this
// login. A guest's ID does not do that, since it may have been planted.
func TestALogoutThatCrossesARenewEndsTheSession(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		hooks := &audit{}
		s := newUserSite(t, r, middleware.Options{Hooks: hooks.hooks()})
		v := s.visitor(t)
		planted := with(t, v.cookies(s)...)
		v.get(s.URL+"/login/ann").want(t, 200, "")
		old := with(t, v.cookies(s)...)
		v.get(s.URL+"/renew").want(t, 200, "")
		v.get(s.URL+"/renew").want(t, 200, "")

		planted.get(s.URL+"/logout").want(t, 200, "")
		v.get(s.URL+"/user").want(t, 200, "ann")
		id := v.get(s.URL + "/id").body
		hooks.lines = nil
		old.get(s.URL+"/logout").want(t, 200, "")
		hooks.want(t, "end "+id)
		v.get(s.URL+"/user").want(t, 200, "")
	})
}

// P4: A logout whose session has moved fails if Redis does not reply to the end of that session: the visitor is not told
// that they are logged out while the session goes on. So does a login as another user, which ends that session, too, and
// a login as the same user, which would drop what the session has.
func TestALogoutOrLoginThatCannotEndTheMovedSessionFails(t *testing.T) {
	t.Parallel()
	looks := func(c redistest.Command) bool {
		return c.Name == "MGET" || slices.Contains(c.Args, "1048576") // MaxBytes, which only a script that reads is given
	}
	ends := func(c redistest.Command) bool {
		return strings.Contains(strings.Join(c.Args, " "), `"gone":`) && !looks(c)
	}
	for name, test := range map[string]struct {
		path  string
		drops func(redistest.Command) bool
	}{
		"logout, which cannot end it":                 {"/logout", ends},
		"login as another, which cannot look for it":  {"/login/bob", looks},
		"login as another, which cannot end it":       {"/login/bob", ends},
		"login as the same, which cannot look for it": {"/login/ann", looks},
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			proxy := redistest.NewProxy(t, r)
			s, elsewhere := newUserSite(t, r, middleware.Options{}), newSite(t, proxy.Pool(t, 4), middleware.Options{}, users(nil))
			v := newVisitor(t).everywhere()
			v.get(s.URL+"/login/ann").want(t, 200, "")
			old := with(t, v.cookies(s)...).everywhere()
			v.get(s.URL+"/renew").want(t, 200, "")
			record := recordOf(v.get(s.URL + "/id").body)
			var dropped atomic.Bool
			proxy.Inject(func(c redistest.Command) redistest.Fault {
				if slices.Contains(c.Args, record) && test.drops(c) {
					dropped.Store(true)
					return redistest.DropCommand
				}
				return redistest.Pass
			})
			a := old.get(elsewhere.URL + test.path)
			if a.want(t, 503, "*"); a.sets() {
				t.Errorf("the response changes cookies: %v", a.Header["Set-Cookie"])
			}
			if !dropped.Load() {
				t.Error("no command was dropped")
			}
			v.get(s.URL+"/user").want(t, 200, "ann")
		})
	}
}

// P4: If a Renew crosses a read, the read leaves the old ID its full minute, even if the session had hardly any time
// left. So a second tab can log out with the old cookie, which ends the session.
func TestALogoutAfterAReadThatARenewCrossedEndsTheSession(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		proxy := redistest.NewProxy(t, r)
		o := middleware.Options{TTL: 30 * time.Minute, Lifetime: 50 * time.Minute}
		s := newUserSite(t, r, o)
		o.Mode = func(*http.Request) middleware.Mode { return middleware.Optimistic }
		elsewhere := newSite(t, proxy.Pool(t, 4), o, users(nil))
		v := newVisitor(t).everywhere()
		v.get(s.URL+"/login/ann").want(t, 200, "")
		old := with(t, v.cookies(s)...).everywhere()
		redistest.Elapse(o.TTL - time.Second) // the visitor comes back just in time, in the last TTL of the lifetime
		crossed := false
		proxy.Inject(func(c redistest.Command) redistest.Fault {
			if strings.HasPrefix(c.Name, "EVAL") && !crossed { // the script behind the plain read
				crossed = true
				v.get(s.URL+"/renew").want(t, 200, "")
			}
			return redistest.Pass
		})
		old.get(elsewhere.URL + "/user")
		if !crossed {
			t.Fatal("the read needed no script")
		}
		redistest.Elapse(2 * time.Second)
		old.get(s.URL+"/logout").want(t, 200, "")
		v.get(s.URL+"/user").want(t, 200, "")
	})
}

// P4: A login as another user ends the session that a member's ID has become. But if the browser has logged in as
// that user meanwhile, nothing ends: the login does not end a session of its own user, nor one whose user it cannot
// read.
func TestALoginSparesWhatHasBecomeItsUsersSessionMeanwhile(t *testing.T) {
	for name, status := range map[string]int{"it reads whose session it is": 200, "it cannot read whose session it is": 503} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *redistest.Server) {
				proxy := redistest.NewProxy(t, r)
				s, elsewhere := newUserSite(t, r, middleware.Options{}), newSite(t, proxy.Pool(t, 4), middleware.Options{}, users(nil))
				v := newVisitor(t).everywhere()
				v.get(s.URL+"/login/ann").want(t, 200, "")
				late := with(t, v.cookies(s)...).everywhere()
				v.get(s.URL+"/login/bob").want(t, 200, "")
				proxy.Inject(func(c redistest.Command) redistest.Fault {
					if strings.HasPrefix(c.Name, "EVAL") && strings.Contains(strings.Join(c.Args, " "), `"d":`) { // it has seen bob's session, and stores ann's
						return redistest.HangCommand
					}
					return redistest.Pass
				})
				done := late.start(elsewhere.URL + "/login/ann")
				synctest.Wait()
				v.get(s.URL+"/login/ann").want(t, 200, "")
				record := recordOf(v.get(s.URL + "/id").body)
				proxy.Inject(func(c redistest.Command) redistest.Fault {
					reads := c.Name == "MGET" || slices.Contains(c.Args, "1048576") // MaxBytes, which only a script that reads is given
					if status == 503 && reads && slices.Contains(c.Args, record) {
						return redistest.DropCommand
					}
					return redistest.Pass
				})
				proxy.Release()
				(<-done).want(t, status, "*")
				v.get(s.URL+"/user").want(t, 200, "ann")
			})
		})
	}
}

// P4: A login as another user, with a member's ID that has moved, ends the session that the ID has become, since the
// browser has changed hands. A login as the same user does not.
func TestALoginOfAnotherUserEndsWhatTheIDHasBecome(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s := newUserSite(t, r, middleware.Options{})
		v := newVisitor(t)
		v.get(s.URL+"/login/ann").want(t, 200, "")
		old := with(t, v.cookies(s)...)
		v.get(s.URL+"/renew").want(t, 200, "")
		v.get(s.URL+"/user").want(t, 200, "ann")
		old.get(s.URL+"/login/ann").want(t, 200, "")
		v.get(s.URL+"/user").want(t, 200, "ann")
		old.get(s.URL+"/login/bob").want(t, 200, "")
		v.get(s.URL+"/user").want(t, 200, "")
	})
}

// P4: A refused login ends nothing, even if its browser has changed hands.
func TestALoginThatIsRefusedEndsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s := newUserSite(t, r, middleware.Options{MaxSessions: 1, RefuseLogin: true})
		elsewhere, v := newVisitor(t), newVisitor(t)
		elsewhere.get(s.URL+"/login/ann").want(t, 200, "")
		elsewhere.get(s.URL+"/user").want(t, 200, "ann")
		v.get(s.URL+"/login/bob").want(t, 200, "")
		old := with(t, v.cookies(s)...)
		v.get(s.URL+"/renew").want(t, 200, "")
		old.get(s.URL+"/login/ann").want(t, 403, "*")
		v.get(s.URL+"/user").want(t, 200, "bob")
	})
}

// P4: a login is a new beginning. Nobody inherits the "remember me" or the age of the session before, whether it was
// a guest's, the user's or another's.
func TestALoginIsANewBeginning(t *testing.T) {
	t.Parallel()
	for before, path := range map[string]string{"a guest": "/add", "the same user": "/login/ann", "another user": "/login/mallory"} {
		inFakeTime(t, before, func(t *testing.T, r *redistest.Server) {
			var s *site
			mux := users(func() *middleware.Sessions { return s.sessions })
			handle(mux, "/remember", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) { s.Remember(month) })
			handle(mux, "/times", func(s *session.Session, w http.ResponseWriter, _ *http.Request) {
				fmt.Fprint(w, time.Since(s.LoginTime()), " ", time.Until(s.Expires()))
			})
			s = newSite(t, r.Pool(t, 4), middleware.Options{TTL: time.Hour, Lifetime: 2 * time.Hour}, mux)
			v := newVisitor(t)
			v.get(s.URL+path).want(t, 200, "*")
			v.get(s.URL+"/remember").want(t, 200, "")
			v.wantLeft(t, s, r, month)
			redistest.Elapse(24 * time.Hour)

			v.get(s.URL+"/login/ann").wantMaxAge(t, 0)
			v.get(s.URL+"/times").want(t, 200, "0s 1h0m0s")
			v.wantLeft(t, s, r, time.Hour)
			redistest.Elapse(50 * time.Minute)
			v.get(s.URL+"/times").want(t, 200, "50m0s 1h0m0s")
			list, err := s.sessions.List(t.Context(), "ann")
			if err != nil || len(list) != 1 || time.Since(list[0].Created) != 50*time.Minute {
				t.Errorf("ann has %+v, %v", list, err)
			}
			redistest.Elapse(50 * time.Minute)
			v.get(s.URL+"/times").want(t, 200, "1h40m0s 20m0s")
		})
	}
}

// P11: After the logout, Back must not show an earlier page. So no browser stores a member's page.
func TestAMembersPageIsNotStored(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		var s *site
		mux := users(func() *middleware.Sessions { return s.sessions })
		mux.HandleFunc("/decides", func(w http.ResponseWriter, req *http.Request) {
			session.FromContext(req.Context()).Len()
			w.Header().Set("Cache-Control", "private, max-age=5")
		})
		s = newSite(t, r.Pool(t, 4), middleware.Options{}, mux)
		v := s.visitor(t)
		wantControl := func(path, want string) {
			t.Helper()
			if a := v.get(s.URL + path); a.Header.Get("Cache-Control") != want {
				t.Errorf("%s: %v, want %q", path, a.Header, want)
			}
		}
		wantControl("/get", "private")
		v.get(s.URL+"/login/ann").want(t, 200, "")
		wantControl("/get", "no-store")
		wantControl("/nothing", "")
		wantControl("/decides", "private, max-age=5")
		v.get(s.URL+"/logout").want(t, 200, "")
		wantControl("/get", "private")
	})
}

// browserThatGot returns a visitor with the cookies of these answers, which came in this order.
func browserThatGot(t *testing.T, answers ...answer) *visitor {
	t.Helper()
	v := newVisitor(t)
	for _, a := range answers {
		a.want(t, 200, "")
		v.Jar.SetCookies(a.Request.URL, a.Cookies())
	}
	return v
}

// P4: A double click on "Log in". Both responses come, in any order, or only one comes. The visitor is logged in,
// still has the cart, and is on the list once. RefuseLogin refuses neither login, even if there was no session
// before.
func TestADoubleClickIsOneLogin(t *testing.T) {
	t.Parallel()
	for _, before := range []string{"a cart", "nothing"} {
		for answers, order := range map[string][]int{"first": {0}, "second": {1}, "first, second": {0, 1}, "second, first": {1, 0}} {
			inFakeTime(t, before+", "+answers, func(t *testing.T, r *redistest.Server) {
				hooks := &audit{}
				s := newUserSite(t, r, middleware.Options{MaxSessions: 1, RefuseLogin: true, Hooks: hooks.hooks()})
				cart := newVisitor(t)
				want := "0"
				if before == "a cart" {
					cart.get(s.URL+"/add").want(t, 200, "1")
					want = "1"
				}
				page := with(t, cart.cookies(s)...)
				both := []answer{page.navigate("POST", s.URL+"/login/ann"), page.navigate("POST", s.URL+"/login/ann")}
				var got []answer
				for _, i := range order {
					got = append(got, both[i])
				}
				v := browserThatGot(t, got...)
				list, err := s.sessions.List(t.Context(), "ann")
				if err != nil || len(list) != 1 {
					t.Errorf("ann has %+v, %v", list, err)
				}
				hooks.lines = nil
				v.get(s.URL+"/user").want(t, 200, "ann")
				v.get(s.URL+"/get").want(t, 200, want)
				if newest := order[len(order)-1]; newest == 1 && len(hooks.lines) != 1 {
					t.Errorf("the hooks were called with %q, want the end of the older session", hooks.lines)
				}
				another := newVisitor(t).get(s.URL + "/login/ann") // in another browser
				another.want(t, 403, "*")
			})
		}
	}
}

// P4: A session that gives way ends when somebody comes back with the newer login, and not before. Only the newer
// login ends the older one.
func TestALoginGivesWayToTheNextOne(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s := newUserSite(t, r, middleware.Options{})
		guest := s.visitor(t)
		page := with(t, guest.cookies(s)...)
		first := browserThatGot(t, page.get(s.URL+"/login/ann"))
		second := browserThatGot(t, page.get(s.URL+"/login/ann"))
		first.get(s.URL+"/user").want(t, 200, "ann") // comes first
		second.get(s.URL+"/user").want(t, 200, "ann")
		first.get(s.URL+"/user").want(t, 200, "ann")

		third := browserThatGot(t, second.get(s.URL+"/renew"))
		crossing := with(t, second.cookies(s)...)
		fourth := browserThatGot(t, crossing.get(s.URL+"/login/ann"))
		fourth.get(s.URL+"/add").want(t, 200, "2") // the values went along
		third.get(s.URL+"/user").want(t, 200, "")
		first.get(s.URL+"/user").want(t, 200, "ann")
	})
}

// P4: A planted guest's cookie gives nobody power over a login. Neither a logout with that cookie nor a login as
// another user ends the session that its ID has become. A login as the same user ends only a session that nobody has
// come back with.
func TestAPlantedCookieEndsNoLogin(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s := newUserSite(t, r, middleware.Options{})
		planted := s.visitor(t)
		mallory := with(t, planted.cookies(s)...)
		ann := browserThatGot(t, mallory.get(s.URL+"/login/ann"))
		mallory.get(s.URL+"/logout").want(t, 200, "")
		other := browserThatGot(t, mallory.get(s.URL+"/login/mallory"))
		other.get(s.URL+"/get").want(t, 200, "0") // the planted cookie does not show the session's values
		other.get(s.URL+"/user").want(t, 200, "mallory")
		ann.get(s.URL+"/user").want(t, 200, "ann")
		again := browserThatGot(t, mallory.get(s.URL+"/login/ann"))
		again.get(s.URL+"/user").want(t, 200, "ann")
		ann.get(s.URL+"/user").want(t, 200, "ann")
	})
}

// P4: One of two members' cookies may have moved, for example a planted one. Renew then renews the session of the
// other one.
func TestARenewBesideAnotherMembersMovedID(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s := newUserSite(t, r, middleware.Options{})
		planted, ann := newVisitor(t), newVisitor(t)
		planted.get(s.URL+"/login/mallory").want(t, 200, "")
		moved := planted.cookies(s)
		planted.get(s.URL+"/renew").want(t, 200, "")
		ann.get(s.URL+"/login/ann").want(t, 200, "")
		both := with(t, append(moved, ann.cookies(s)...)...)
		browserThatGot(t, both.background("GET", s.URL+"/renew")).get(s.URL+"/user").want(t, 200, "ann")
	})
}
