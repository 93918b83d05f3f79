package middleware_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// P14, ASVS 7.4.2, 7.4.3, 7.4.5 and 7.5.2: a request that is under way when its session is ended
// does not escape: neither its writes, nor a new ID, nor another login are saved. Its context ends.
// Other sessions go on.
func TestARequestUnderWayDoesNotEscapeTheEnd(t *testing.T) {
	onEach(t, func(t *testing.T, r *redistest.Server) {
		ends := map[string]func(s *site, own, thief string) error{
			"one":    func(s *site, _, thief string) error { return s.sessions.End(t.Context(), thief) },
			"others": func(s *site, own, _ string) error { _, err := s.sessions.EndAll(t.Context(), "ann", own); return err },
			"all":    func(s *site, _, _ string) error { _, err := s.sessions.EndAll(t.Context(), "ann"); return err },
		}
		changes := map[string]func(*session.Session){
			"add":   func(*session.Session) {},
			"renew": (*session.Session).Renew,
			"again": func(s *session.Session) { s.Login("ann") },
			"bob":   func(s *session.Session) { s.Login("bob") },
		}
		for how, end := range ends {
			for what, change := range changes {
				if r.IsReal() && what != "renew" {
					continue // each takes as long as a renewal of the lease
				}
				var s *site
				var own, thief *visitor
				mux := users(func() *middleware.Sessions { return s.sessions })
				handle(mux, "/slow", func(theirs *session.Session, _ http.ResponseWriter, req *http.Request) {
					must(t, end(s, own.get(s.URL+"/id").body, theirs.ID()))
					<-req.Context().Done()
					change(theirs)
					theirs.Set("n", 100)
				})
				s = newSiteOn(t, store.New(r.Pool(t, 8), store.Options{Lease: 3 * time.Second, Timeout: 20 * time.Second}), middleware.Options{}, mux)
				own, thief = visitAs(t, s, "ann"), visitAs(t, s, "ann")
				bob, guest := visitAs(t, s, "bob"), newVisitor(t)
				guest.get(s.URL+"/add").want(t, 200, "1")
				a := thief.get(s.URL + "/slow")
				if a.StatusCode != http.StatusConflict || a.sets() {
					t.Errorf("%s, %s: the thief's answer is %d %q, %v", how, what, a.StatusCode, a.body, a.Header)
				}
				left := map[string]string{"one": "ann", "others": "ann", "all": ""}[how]
				wantUsers(t, s, map[*visitor]string{own: left, thief: "", bob: "bob", guest: ""})
				guest.get(s.URL+"/get").want(t, 200, "1")
				own.get(s.URL+"/logout").want(t, 200, "")
				bob.get(s.URL+"/logout").want(t, 200, "")
				// The ID that a refused login was to get is taken off the list in the background.
				for _, user := range []string{"ann", "bob"} {
					redistest.Eventually(t, how+", "+what+": "+user+" has no session", func() bool {
						list, err := s.sessions.List(t.Context(), user)
						must(t, err)
						return len(list) == 0
					})
				}
			}
		}
	})
}

// ASVS 7.4.3: sessions are ended even if they are much older than the session that ends them.
func TestAllOtherSessionsOfAUserCanBeEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s := newUserSite(t, r, middleware.Options{TTL: 60 * time.Hour, Lifetime: 60 * time.Hour})
		thief := visitAs(t, s, "ann")
		redistest.Elapse(50 * time.Hour)
		laptop, phone, bob := visitAs(t, s, "ann"), visitAs(t, s, "ann"), visitAs(t, s, "bob")
		thief.get(s.URL+"/user").want(t, 200, "ann")
		laptop.get(s.URL+"/end/others").want(t, 200, "2")
		wantUsers(t, s, map[*visitor]string{laptop: "ann", phone: "", thief: "", bob: "bob"})
		laptop.get(s.URL+"/login/ann").want(t, 200, "") // another login brings none of them back
		phone.get(s.URL+"/login/ann").want(t, 200, "")
		wantUsers(t, s, map[*visitor]string{laptop: "ann", phone: "ann", thief: "", bob: "bob"})
	})
}

// If two sessions of a user end each other at the same time, both end. Neither waits for the other, although each
// holds its own lock. No thief stays in place of the user.
func TestTwoSessionsThatEndEachOtherAreBothOver(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		free := make(chan struct{})
		var s *site
		mux := users(func() *middleware.Sessions { return s.sessions })
		handle(mux, "/end-others", func(own *session.Session, _ http.ResponseWriter, req *http.Request) {
			user := own.User() // the session is open now
			<-free
			_, err := s.sessions.EndAll(req.Context(), user, own.ID())
			must(t, err)
			own.Renew()
		})
		s = newSite(t, r.Pool(t, 8), middleware.Options{}, mux)
		one, two := visitAs(t, s, "ann"), visitAs(t, s, "ann")
		first, second := one.start(s.URL+"/end-others"), two.start(s.URL+"/end-others")
		synctest.Wait()
		close(free)
		<-first
		<-second
		wantUsers(t, s, map[*visitor]string{one: "", two: ""})
		one.get(s.URL+"/login/ann").want(t, 200, "")
		wantUsers(t, s, map[*visitor]string{one: "ann", two: ""})
	})
}

// ASVS 7.4.3: a login with the old password does not escape if it is under way while the password
// is changed and all sessions are ended.
func TestALoginWithTheOldPasswordDoesNotEscape(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		var s *site
		var laptop *visitor
		mux := users(func() *middleware.Sessions { return s.sessions })
		handle(mux, "/slow-login", func(own *session.Session, w http.ResponseWriter, _ *http.Request) {
			time.Sleep(time.Millisecond) // the password was right, and is changed by another request now
			laptop.get(s.URL+"/end/others").want(t, 200, "0")
			own.Login("ann")
			fmt.Fprint(w, "welcome")
		})
		s = newSite(t, r.Pool(t, 8), middleware.Options{}, mux)
		laptop = visitAs(t, s, "ann")
		thief := newVisitor(t)
		thief.get(s.URL+"/slow-login").want(t, http.StatusConflict, "*")
		wantUsers(t, s, map[*visitor]string{laptop: "ann", thief: ""})
		wantUsers(t, s, map[*visitor]string{visitAs(t, s, "ann"): "ann"}) // at once, with the new one
	})
}

// P1: a logout that has the session right behind a write fails with that write, if another device has ended the session
// before the write was stored: its handler may have seen what was written.
func TestALogoutBehindAWriteThatFailsAlsoFails(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		proxy := redistest.NewProxy(t, r)
		elsewhere := newUserSite(t, r, middleware.Options{})
		mux, free := users(nil), make(chan struct{})
		handle(mux, "/slow-add", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) { add(s); <-free })
		s := newSite(t, proxy.Pool(t, 4), middleware.Options{}, mux)
		v := with(t, visitAs(t, elsewhere, "ann").cookies(elsewhere)...).everywhere()
		write := v.start(s.URL + "/slow-add")
		synctest.Wait()
		logout := v.start(s.URL + "/logout")
		synctest.Wait()
		proxy.Inject(func(redistest.Command) redistest.Fault { return redistest.HangCommand })
		close(free)
		synctest.Wait() // the write is on its way to Redis, and the logout has the session
		_, err := elsewhere.sessions.EndAll(t.Context(), "ann")
		must(t, err)
		proxy.Inject(nil)
		proxy.Release()
		(<-write).want(t, http.StatusConflict, "*")
		(<-logout).want(t, http.StatusConflict, "*")
	})
}

// ASVS 7.4.3: a thief who keeps a session busy cannot keep its user from ending it: a route that only reads waits for
// nobody.
func TestAUserEndsASessionThatAThiefKeepsBusy(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		var s *site
		mux := users(func() *middleware.Sessions { return s.sessions })
		busy := make(chan struct{})
		handle(mux, "/busy", func(own *session.Session, _ http.ResponseWriter, _ *http.Request) { add(own); <-busy })
		s = newSite(t, r.Pool(t, 8), middleware.Options{MaxWaiters: 1}, mux)
		mux.Handle("/log-out-everywhere", s.sessions.ReadOnly(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
			_, err := s.sessions.EndAll(req.Context(), session.FromContext(req.Context()).User())
			must(t, err)
		})))
		v := visitAs(t, s, "ann")
		thief := with(t, v.cookies(s)...).everywhere()
		holds := thief.start(s.URL + "/busy")
		synctest.Wait()
		waits := thief.start(s.URL + "/busy")
		synctest.Wait()
		v.get(s.URL+"/logout").want(t, http.StatusServiceUnavailable, "*") // the thief's requests fill the queue
		v.post(s.URL+"/log-out-everywhere").want(t, 200, "*")
		close(busy)
		(<-holds).want(t, http.StatusConflict, "*")
		<-waits
		wantUsers(t, s, map[*visitor]string{v: "", thief: ""})
	})
}

// P4: A device that is signed out while it gets a new ID is signed out, whichever came first. The user has chosen it
// from a list that had the old ID. Another user's session is spared.
func TestADeviceThatGetsANewIDIsSignedOut(t *testing.T) {
	for change, spared := range map[string]string{"/renew": "", "/login/ann": "", "/login/bob": "bob"} {
		inFakeTime(t, change, func(t *testing.T, r *redistest.Server) {
			s := newUserSite(t, r, middleware.Options{})
			v := s.visitor(t)
			v.get(s.URL+"/login/ann").want(t, 200, "")
			chosen := v.get(s.URL + "/id").body
			for range 2 {
				v.get(s.URL+change).want(t, 200, "")
			}
			err := s.sessions.End(t.Context(), chosen)
			if gone := errors.Is(err, store.ErrGone); gone != (spared != "") || err != nil && !gone {
				t.Errorf("End: %v", err)
			}
			v.get(s.URL+"/user").want(t, 200, spared)
		})
	}
}
