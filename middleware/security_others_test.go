package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/testdata/redistest"
)

// endSession ends the session with a public id: it waits for the request that holds
// it, and no request brings it back. The terms are those of the middleware; with a
// shorter Lifetime an old session would be taken for one that has timed out.
func endSession(ctx context.Context, st *store.Store, id string, terms store.Terms) error {
	hold, err := st.Take(ctx, id, terms)
	switch {
	case hold != nil: // whatever else is wrong with the record
		return hold.Destroy(ctx)
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrGone):
		return nil
	}
	return err
}

// accounts is how an application knows who is logged in where.
type accounts struct {
	st    *store.Store
	terms store.Terms

	mu  sync.Mutex
	ids map[string][]string // of each user's sessions
}

// login begins a session for the user, under a new id.
func (a *accounts) login(_ http.ResponseWriter, r *http.Request) {
	s := session.FromContext(r.Context())
	s.Renew()
	s.Set("user", r.FormValue("user"))
	if s.Commit(r.Context()) != nil {
		return // the answer is that error
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ids[r.FormValue("user")] = append(a.ids[r.FormValue("user")], s.ID()) // the new one, since the commit
}

// endOthers ends all sessions of this one's user but this one.
func (a *accounts) endOthers(w http.ResponseWriter, r *http.Request) {
	s := session.FromContext(r.Context())
	user, _ := session.Get[string](s, "user")
	// Two requests that hold their own session and wait for each other's would wait
	// for long, so this one is released first.
	if s.Commit(r.Context()) != nil {
		return
	}
	fmt.Fprint(w, a.end(r.Context(), user, s.ID()))
}

// end ends all sessions of a user but one, or all.
func (a *accounts) end(ctx context.Context, user, but string) error {
	a.mu.Lock()
	ids := slices.Clone(a.ids[user])
	a.mu.Unlock()
	for _, id := range ids {
		if id == but {
			continue
		}
		if err := endSession(ctx, a.st, id, a.terms); err != nil {
			return err
		}
	}
	return nil
}

// newAccounts serves an application whose users may have many sessions.
func newAccounts(t *testing.T, r *redistest.Server, mux *http.ServeMux) (*site, *accounts) {
	t.Helper()
	a := &accounts{
		st:    store.New(r.Pool(t, 4), store.Options{Lease: 2 * time.Second, Timeout: time.Second}),
		terms: store.Terms{TTL: time.Hour, Lifetime: 60 * time.Hour, LockWait: 5 * time.Second},
		ids:   map[string][]string{},
	}
	mux.HandleFunc("/login-as", a.login)
	mux.HandleFunc("/end-others", a.endOthers)
	mux.HandleFunc("/user", func(w http.ResponseWriter, req *http.Request) {
		user, _ := session.Get[string](session.FromContext(req.Context()), "user")
		fmt.Fprint(w, user)
	})
	return newSiteOn(t, a.st, middleware.Options{TTL: a.terms.TTL, Lifetime: a.terms.Lifetime, LockWait: a.terms.LockWait}, mux), a
}

// ASVS 7.4.3 and 7.5.2: a user who has changed the password ends all other sessions,
// however old these are.
func TestAllOtherSessionsOfAUserCanBeEnded(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Server) {
		s, a := newAccounts(t, r, app())
		visit := func(user string) *visitor {
			v := newVisitor(t)
			v.get(s.URL+"/add").want(t, 200, "1")
			v.get(s.URL+"/login-as?user="+user).want(t, 200, "")
			v.get(s.URL+"/user").want(t, 200, user)
			return v
		}
		laptop, phone, thief, bob := visit("ann"), visit("ann"), visit("ann"), visit("bob")
		makeOlder(t, r, a.ids["ann"][2], 50*time.Hour)
		thief.get(s.URL+"/user").want(t, 200, "ann")

		laptop.get(s.URL+"/end-others").want(t, 200, "<nil>")
		laptop.get(s.URL+"/user").want(t, 200, "ann")
		bob.get(s.URL+"/user").want(t, 200, "bob")
		for _, v := range []*visitor{phone, thief} {
			v.get(s.URL+"/user").want(t, 200, "")
			v.get(s.URL+"/add").want(t, 409, "*")
		}
	})
}

// Two sessions of a user may end each other at the same time: neither waits for the
// other, since each has been released.
func TestTwoSessionsMayEndEachOther(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		s, a := newAccounts(t, r, mux)
		var both sync.WaitGroup
		both.Add(2)
		mux.HandleFunc("/end-others-together", func(w http.ResponseWriter, req *http.Request) {
			both.Done()
			both.Wait() // each has its session, locked
			a.endOthers(w, req)
		})
		answers := make(chan answer, 2)
		visitors := []*visitor{newVisitor(t), newVisitor(t)}
		for _, v := range visitors {
			v.get(s.URL+"/login-as?user=ann").want(t, 200, "")
		}
		for _, v := range visitors {
			go func() { answers <- v.get(s.URL + "/end-others-together") }()
		}
		for range visitors {
			(<-answers).want(t, 200, "<nil>")
		}
		for _, v := range visitors {
			v.get(s.URL+"/user").want(t, 200, "")
		}
	})
}

// ASVS 7.4.2 and 7.4.5: an administrator ends a session while one of its requests is
// under way. The end waits for that request, and nothing comes after it.
func TestASessionThatIsInUseCanBeEnded(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		busy, free := pausing(mux)
		s, a := newAccounts(t, r, mux)
		v := newVisitor(t)
		v.get(s.URL+"/login-as?user=ann").want(t, 200, "")
		working, ended := make(chan answer, 1), make(chan error, 1)
		go func() { working <- v.get(s.URL + "/pause") }()
		<-busy
		go func() { ended <- a.end(t.Context(), "ann", "") }()
		close(free)
		(<-working).want(t, 200, "stored")
		if err := <-ended; err != nil {
			t.Error(err)
		}
		v.get(s.URL+"/user").want(t, 200, "")
		v.get(s.URL+"/add").want(t, 409, "*")
	})
}

// ASVS 7.4.5: an administrator with nothing but redis-cli deletes the record. A request
// that is under way cannot write the session back.
func TestDeletingTheRecordEndsASession(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		busy, free := pausing(mux)
		s := newSite(t, r.Pool(t, 4), middleware.Options{}, mux)
		v := newVisitor(t)
		v.get(s.URL+"/login").want(t, 200, "")
		record, _ := keysOf(v.get(s.URL + "/id").body)
		working := make(chan answer, 1)
		go func() { working <- v.get(s.URL + "/pause") }()
		<-busy
		r.Do(t, "DEL", record)
		close(free)
		(<-working).want(t, 503, "*")
		v.get(s.URL+"/len").want(t, 200, "0")
		if keys := strings.Join(r.Keys(t), " "); strings.Contains(keys, record) {
			t.Errorf("the session is back: %s", keys)
		}
	})
}

// The same with a session that many requests of two processes wait for: whichever of
// them holds it, none brings it back.
func TestDeletingTheRecordEndsASessionInACrowd(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Server) {
		one := newSite(t, r.Pool(t, 4), middleware.Options{}, app())
		two := newSite(t, r.Pool(t, 4), middleware.Options{}, app())
		v := newVisitor(t)
		v.get(one.URL+"/login").want(t, 200, "")
		record, _ := keysOf(v.get(one.URL + "/id").body)
		crowd := with(t, v.cookies(one)...)
		const each = 30
		answers := make(chan answer, 2*each)
		for range each {
			for _, s := range []*site{one, two} {
				go func() { answers <- crowd.get(s.URL + "/add") }()
			}
		}
		for range each / 2 {
			(<-answers).want(t, 200, "*")
		}
		r.Do(t, "DEL", record)
		for range 2*each - each/2 {
			if a := <-answers; a.StatusCode != 200 && a.StatusCode != 503 { // a new session, or the lost lock
				t.Errorf("%d %q %v", a.StatusCode, a.body, a.err)
			}
		}
		if r.Exists(t, record) {
			t.Error("the session is back")
		}
	})
}
