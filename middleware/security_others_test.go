package middleware_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// newSlowUserSite is newUserSite with requests that are in the middle of something until free is closed.
// Each sends to busy when it is.
func newSlowUserSite(t *testing.T, r *redistest.Server) (s *site, busy, free chan struct{}) {
	t.Helper()
	busy, free = make(chan struct{}), make(chan struct{})
	mux := users(func() *middleware.Sessions { return s.sessions })
	handle(mux, "/slow/{what}", func(own *session.Session, w http.ResponseWriter, req *http.Request) {
		user := own.User() // is open now
		busy <- struct{}{}
		<-free
		switch req.PathValue("what") {
		case "add":
			own.Set("n", 100)
		case "renew":
			own.Renew()
		case "login":
			own.Login("ann")
		case "end-others":
			if _, err := s.sessions.EndAll(req.Context(), user, own.ID()); err != nil {
				t.Error(err)
			}
			own.Renew()
		}
	})
	s = newSite(t, r.Pool(t, 8), middleware.Options{TTL: time.Hour, Lifetime: 60 * time.Hour}, mux)
	return s, busy, free
}

// visitAs returns a visitor who is logged in.
func visitAs(t *testing.T, s *site, user string) *visitor {
	t.Helper()
	v := newVisitor(t)
	v.get(s.URL+"/add").want(t, 200, "1")
	v.get(s.URL+"/login/"+user).want(t, 200, "")
	v.get(s.URL+"/user").want(t, 200, user)
	return v
}

// wantUsers checks who is logged in where.
func wantUsers(t *testing.T, s *site, want map[*visitor]string) {
	t.Helper()
	for v, user := range want {
		v.get(s.URL+"/user").want(t, 200, user)
	}
}

// ASVS 7.1.2 and 7.5.2: a user sees all sessions, and ends any of them, also while that one is getting
// a new id.
func TestAnySessionOfAUserCanBeEnded(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		s, busy, free := newSlowUserSite(t, r)
		laptop, phone, thief, bob := visitAs(t, s, "ann"), visitAs(t, s, "ann"), visitAs(t, s, "ann"), visitAs(t, s, "bob")
		list, err := s.sessions.List(t.Context(), "ann")
		if err != nil || len(list) != 3 {
			t.Fatalf("%+v, %v", list, err)
		}
		id := thief.get(s.URL + "/id").body
		done := thief.start(s.URL + "/slow/renew")
		<-busy
		if err := s.sessions.End(t.Context(), id); err != nil {
			t.Error(err)
		}
		close(free)
		if a := <-done; a.StatusCode < 400 || a.sets() {
			t.Errorf("the thief's answer is %d %q, %v", a.StatusCode, a.body, a.Header)
		}
		wantUsers(t, s, map[*visitor]string{laptop: "ann", phone: "ann", thief: "", bob: "bob"})
	})
}

// ASVS 7.4.3 and 7.5.2: a user who has changed the password ends all other sessions, however old these
// are, and keeps this one.
func TestAllOtherSessionsOfAUserCanBeEnded(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		s := newUserSite(t, r, middleware.Options{TTL: time.Hour, Lifetime: 60 * time.Hour})
		laptop, phone, thief, bob := visitAs(t, s, "ann"), visitAs(t, s, "ann"), visitAs(t, s, "ann"), visitAs(t, s, "bob")
		makeOlder(t, r, thief.get(s.URL+"/id").body, 50*time.Hour)
		thief.get(s.URL+"/user").want(t, 200, "ann")

		laptop.get(s.URL+"/end/others").want(t, 200, "2")
		wantUsers(t, s, map[*visitor]string{laptop: "ann", phone: "", thief: "", bob: "bob"})
		laptop.get(s.URL+"/login/ann").want(t, 200, "") // logging in once more keeps it that way
		phone.get(s.URL+"/login/ann").want(t, 200, "")
		wantUsers(t, s, map[*visitor]string{laptop: "ann", phone: "ann", thief: "", bob: "bob"})
	})
}

// ASVS 7.4.3: what is under way in a session when that is ended does not escape: neither what it
// writes, nor a new id, nor another login.
func TestARequestUnderWayDoesNotEscapeTheEnd(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"add", "renew", "login"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			redistest.Each(t, func(t *testing.T, r *redistest.Server) {
				s, busy, free := newSlowUserSite(t, r)
				laptop, thief := visitAs(t, s, "ann"), visitAs(t, s, "ann")
				done := thief.start(s.URL + "/slow/" + what)
				<-busy
				end := laptop.get(s.URL + "/end/others")
				close(free)
				underWay := <-done
				end.want(t, 200, "1")
				if underWay.StatusCode < 400 || underWay.sets() {
					t.Errorf("the thief's answer is %d %q, %v", underWay.StatusCode, underWay.body, underWay.Header)
				}
				wantUsers(t, s, map[*visitor]string{laptop: "ann", thief: ""})
				if list, err := s.sessions.List(t.Context(), "ann"); len(list) != 1 || err != nil {
					t.Errorf("listed are %+v, %v", list, err)
				}
			})
		})
	}
}

// Two sessions of a user that end each other at the same time are both over, and neither waits for the
// other, though each holds its own. No thief stays in place of the user.
func TestTwoSessionsThatEndEachOtherAreBothOver(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		s, busy, free := newSlowUserSite(t, r)
		one, two := visitAs(t, s, "ann"), visitAs(t, s, "ann")
		var both sync.WaitGroup
		for _, v := range []*visitor{one, two} {
			both.Go(func() { v.get(s.URL + "/slow/end-others") })
			<-busy
		}
		close(free)
		both.Wait()
		wantUsers(t, s, map[*visitor]string{one: "", two: ""})
		one.get(s.URL+"/login/ann").want(t, 200, "")
		wantUsers(t, s, map[*visitor]string{one: "ann", two: ""})
	})
}

// ASVS 7.4.2 and 7.4.5: an administrator ends all sessions of a user, also those in use, and none of
// others.
func TestAnAdministratorEndsAllSessionsOfAUser(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		s, busy, free := newSlowUserSite(t, r)
		laptop, phone, bob, guest := visitAs(t, s, "ann"), visitAs(t, s, "ann"), visitAs(t, s, "bob"), newVisitor(t)
		guest.get(s.URL+"/add").want(t, 200, "1")
		done := phone.start(s.URL + "/slow/add")
		<-busy
		if n, err := s.sessions.EndAll(t.Context(), "ann"); n != 2 || err != nil {
			t.Errorf("EndAll: %d, %v", n, err)
		}
		close(free)
		if a := <-done; a.StatusCode != http.StatusServiceUnavailable && a.StatusCode != http.StatusConflict {
			t.Errorf("the request under way: %d %q", a.StatusCode, a.body)
		}
		wantUsers(t, s, map[*visitor]string{laptop: "", phone: "", bob: "bob", guest: ""})
		guest.get(s.URL+"/get").want(t, 200, "1")
	})
}

// An account is an application's own: its password, which is hashed elsewhere.
type account struct {
	mu       sync.Mutex
	password string
}

func (a *account) hash() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.password
}

func (a *account) change(password string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.password = password
}

// logIn is for a user who gave the password with this hash.
func (a *account) logIn(sessions *middleware.Sessions, w http.ResponseWriter, r *http.Request, user, hash string) {
	s := session.FromContext(r.Context())
	s.Login(user)
	if err := s.Commit(r.Context()); err != nil {
		return // the answer is that error, whatever is written here
	}
	if a.hash() != hash { // it was changed meanwhile, and EndAll came too early for this session
		if err := sessions.End(r.Context(), s.ID()); err != nil {
			panic(err) // the client does not get the cookie
		}
		http.Error(w, "wrong password", http.StatusForbidden)
	}
}

// ASVS 7.4.3: a login with the old password that is under way when that is changed, and all sessions
// ended, does not escape, if it looks once more: whether it has stored its session before that or after.
func TestALoginWithTheOldPasswordDoesNotEscape(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		a := &account{password: "old"}
		checked, changed := make(chan struct{}), make(chan struct{})
		var s *site
		mux := users(func() *middleware.Sessions { return s.sessions })
		mux.HandleFunc("/slow-login", func(w http.ResponseWriter, req *http.Request) {
			hash := a.hash() // the password was right
			checked <- struct{}{}
			<-changed
			a.logIn(s.sessions, w, req, "ann", hash)
			fmt.Fprint(w)
		})
		s = newSite(t, r.Pool(t, 8), middleware.Options{}, mux)
		laptop, thief := visitAs(t, s, "ann"), newVisitor(t)
		done := thief.start(s.URL + "/slow-login")
		<-checked
		a.change("new") // before EndAll
		laptop.get(s.URL+"/end/others").want(t, 200, "0")
		close(changed)
		(<-done).want(t, http.StatusForbidden, "*")
		wantUsers(t, s, map[*visitor]string{laptop: "ann", thief: ""})
	})
}
