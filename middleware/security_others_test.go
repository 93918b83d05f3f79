package middleware_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/testdata/redistest"
)

// accounts is an application's table of users. Each has a number, and a session belongs to
// its user only as long as it has the same one.
type accounts struct {
	mu     sync.Mutex
	epochs map[string]int
}

// epoch returns the number of a user, if there is such a user.
func (a *accounts) epoch(user string) (epoch int, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	epoch, ok = a.epochs[user]
	return epoch, ok
}

// raise raises the number, if it still is the one given.
func (a *accounts) raise(user string, from int) (epoch int, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if epoch, ok := a.epochs[user]; !ok || epoch != from {
		return 0, false
	}
	a.epochs[user]++
	return a.epochs[user], true
}

// logIn is for a user who gave the right password. epoch was read together with its hash: if
// the password is changed meanwhile, the session that begins here has ended already.
func logIn(s *session.Session, user string, epoch int) {
	s.Renew()
	s.Set("user", user)
	s.Set("epoch", epoch)
}

// user returns who is logged in: nobody, if the session has been ended since.
func (a *accounts) user(s *session.Session) string {
	user, _ := session.Get[string](s, "user")
	epoch, known := session.Get[int](s, "epoch")
	if current, ok := a.epoch(user); !ok || !known || epoch != current {
		return ""
	}
	return user
}

// endOthers ends all sessions of the user of s but s itself, unless that has been ended, too.
func (a *accounts) endOthers(s *session.Session) bool {
	user, _ := session.Get[string](s, "user")
	epoch, known := session.Get[int](s, "epoch")
	if !known {
		return false
	}
	// UPDATE users SET epoch = epoch + 1 WHERE name = $1 AND epoch = $2 RETURNING epoch
	raised, ok := a.raise(user, epoch)
	if ok {
		s.Set("epoch", raised)
	}
	return ok
}

// newAccounts serves an application whose users are ann and bob.
func newAccounts(t *testing.T, r *redistest.Server, mux *http.ServeMux) (*site, *accounts) {
	t.Helper()
	a := &accounts{epochs: map[string]int{"ann": 1, "bob": 1}}
	mux.HandleFunc("/login-as", func(_ http.ResponseWriter, req *http.Request) {
		user := req.FormValue("user")
		if epoch, ok := a.epoch(user); ok {
			logIn(session.FromContext(req.Context()), user, epoch)
		}
	})
	mux.HandleFunc("/user", func(w http.ResponseWriter, req *http.Request) {
		fmt.Fprint(w, a.user(session.FromContext(req.Context())))
	})
	mux.HandleFunc("/end-others", func(w http.ResponseWriter, req *http.Request) {
		fmt.Fprint(w, a.endOthers(session.FromContext(req.Context())))
	})
	return newSite(t, r.Pool(t, 4), middleware.Options{TTL: time.Hour, Lifetime: 60 * time.Hour}, mux), a
}

// visitAs returns a visitor who is logged in.
func visitAs(t *testing.T, s *site, user string) *visitor {
	t.Helper()
	v := newVisitor(t)
	v.get(s.URL+"/add").want(t, 200, "1")
	v.get(s.URL+"/login-as?user="+user).want(t, 200, "")
	v.get(s.URL+"/user").want(t, 200, user)
	return v
}

// ASVS 7.4.3 and 7.5.2: a user who has changed the password ends all other sessions,
// however old these are, and keeps this one.
func TestAllOtherSessionsOfAUserCanBeEnded(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Server) {
		s, _ := newAccounts(t, r, app())
		laptop, phone, thief := visitAs(t, s, "ann"), visitAs(t, s, "ann"), visitAs(t, s, "ann")
		bob := visitAs(t, s, "bob")
		makeOlder(t, r, thief.get(s.URL+"/id").body, 50*time.Hour)
		thief.get(s.URL+"/user").want(t, 200, "ann")

		laptop.get(s.URL+"/end-others").want(t, 200, "true")
		for v, user := range map[*visitor]string{laptop: "ann", phone: "", thief: "", bob: "bob"} {
			v.get(s.URL+"/user").want(t, 200, user)
		}
		thief.get(s.URL+"/end-others").want(t, 200, "false")
		laptop.get(s.URL+"/user").want(t, 200, "ann")
		laptop.get(s.URL+"/login-as?user=ann").want(t, 200, "") // logging in once more keeps it that way
		phone.get(s.URL+"/login-as?user=ann").want(t, 200, "")
		for v, user := range map[*visitor]string{laptop: "ann", phone: "ann", thief: ""} {
			v.get(s.URL+"/user").want(t, 200, user)
		}
	})
}

// ASVS 7.4.3: what is under way when a user ends the other sessions does not escape: neither
// a login, nor a session that is just getting a new id, nor one that is about to end the user's.
func TestARequestUnderWayDoesNotEscapeTheEnd(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/slow-login", "/slow-renew", "/slow-end-others"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			redistest.Each(t, func(t *testing.T, r *redistest.Server) {
				mux := app()
				busy, free := make(chan struct{}), make(chan struct{})
				s, a := newAccounts(t, r, mux)
				mux.HandleFunc(path, func(w http.ResponseWriter, req *http.Request) {
					s := session.FromContext(req.Context())
					epoch, _ := a.epoch("ann") // and the password was right
					close(busy)
					<-free
					switch path {
					case "/slow-login":
						logIn(s, "ann", epoch)
					case "/slow-renew":
						s.Renew()
					default:
						fmt.Fprint(w, a.endOthers(s))
					}
				})
				laptop, thief := visitAs(t, s, "ann"), visitAs(t, s, "ann")
				before := thief.get(s.URL + "/id").body
				done := make(chan answer, 1)
				go func() { done <- thief.get(s.URL + path) }()
				<-busy
				end := laptop.get(s.URL + "/end-others")
				close(free)
				underWay := <-done
				end.want(t, 200, "true")
				underWay.want(t, 200, "*")
				if path != "/slow-end-others" && thief.get(s.URL+"/id").body == before {
					t.Error("it got no new id: nothing was tested")
				}
				if underWay.body == "true" {
					t.Error("it has ended the user's sessions")
				}
				thief.get(s.URL+"/user").want(t, 200, "")
				laptop.get(s.URL+"/user").want(t, 200, "ann")
			})
		})
	}
}

// Of two sessions of a user that end each other at the same time, one stays, and neither waits
// for the other, though each holds its own.
func TestOfTwoSessionsThatEndEachOtherOneStays(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		s, a := newAccounts(t, r, mux)
		var both sync.WaitGroup
		both.Add(2)
		mux.HandleFunc("/end-others-together", func(w http.ResponseWriter, req *http.Request) {
			both.Done()
			both.Wait() // each has its session, locked
			fmt.Fprint(w, a.endOthers(session.FromContext(req.Context())))
		})
		visitors := [2]*visitor{visitAs(t, s, "ann"), visitAs(t, s, "ann")}
		var answers [2]answer
		var done sync.WaitGroup
		for i, v := range visitors {
			done.Go(func() { answers[i] = v.get(s.URL + "/end-others-together") })
		}
		done.Wait()
		stays := 0
		for i, v := range visitors {
			answers[i].want(t, 200, "*")
			user := ""
			if answers[i].body == "true" {
				user = "ann"
				stays++
			}
			v.get(s.URL+"/user").want(t, 200, user)
		}
		if stays != 1 {
			t.Errorf("%d of them stay", stays)
		}
	})
}

// ASVS 7.4.2 and 7.4.5: when an administrator raises a user's number, or removes the user, all
// sessions of that user are over, and those of others are not.
func TestAnAdministratorEndsAllSessionsOfAUser(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(a *accounts){
		"the number is raised": func(a *accounts) { a.epochs["ann"]++ },
		"the user is removed":  func(a *accounts) { delete(a.epochs, "ann") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redistest.Each(t, func(t *testing.T, r *redistest.Server) {
				s, a := newAccounts(t, r, app())
				laptop, phone := visitAs(t, s, "ann"), visitAs(t, s, "ann")
				bob, guest := visitAs(t, s, "bob"), newVisitor(t)
				guest.get(s.URL+"/add").want(t, 200, "1")
				a.mu.Lock()
				end(a)
				a.mu.Unlock()
				for v, user := range map[*visitor]string{laptop: "", phone: "", bob: "bob", guest: ""} {
					v.get(s.URL+"/user").want(t, 200, user)
				}
			})
		})
	}
}
