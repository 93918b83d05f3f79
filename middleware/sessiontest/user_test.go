package sessiontest_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/middleware/sessiontest"
	"github.com/a2139e8d/latchkey/session"
)

// devices is a program whose users end their other sessions.
func devices(sessions *middleware.Sessions) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/user", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, session.FromContext(r.Context()).User())
	})
	mux.HandleFunc("POST /set", func(_ http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Set("n", "3")
	})
	mux.HandleFunc("POST /login", func(_ http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Login("bob")
	})
	mux.HandleFunc("POST /end-others", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		n, err := sessions.EndAll(r.Context(), s.User(), s.ID())
		if err != nil {
			http.Error(w, "please try again", middleware.Status(err))
			return
		}
		s.Renew()
		fmt.Fprint(w, n)
	})
	return sessions.Handler(mux)
}

func asAnn(s *session.Session) {
	s.Login("ann")
	s.Set("n", "1")
}

// A client may be logged in, and then the session says as whom. What the program does with that, the
// test sees.
func TestAClientWhoIsLoggedIn(t *testing.T) {
	t.Parallel()
	st := sessiontest.New(t, middleware.Options{})
	st.Serve(devices(st.Sessions))
	laptop, phone, guest := st.Client(asAnn), st.Client(asAnn), st.Client(one)
	if user := st.Session(laptop).User(); user != "ann" {
		t.Errorf("Session is of %q", user)
	}
	if user := st.Session(guest).User(); user != "" {
		t.Errorf("the guest's session is of %q", user)
	}
	list, err := st.Sessions.List(t.Context(), "ann")
	if err != nil || len(list) != 2 || list[0].ID != st.Session(phone).ID() && list[1].ID != st.Session(phone).ID() {
		t.Errorf("ann has %+v, %v", list, err)
	}
	want(t, laptop, st.URL+"/user", 200, "ann")
	want(t, laptop, st.URL+"/end-others", 200, "1")
	if st.Session(laptop).User() != "ann" || !st.Session(phone).IsNew() || st.Session(phone).User() != "" {
		t.Error("not the other session has ended")
	}
	want(t, guest, st.URL+"/login", 200, "")
	if user := st.Session(guest).User(); user != "bob" {
		t.Errorf("after the login the session is of %q", user)
	}
}

// What happens to sessions, happens to those of users in the same way.
func TestWhatHappensToAUsersSession(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		happens func(st *sessiontest.Site, c *http.Client)
		status  int    // of a request that writes
		user    string // that is logged in afterwards
	}{
		"Change": {func(st *sessiontest.Site, c *http.Client) {
			st.Change(c, func(s *session.Session) { s.Set("n", "2") })
		}, 200, "ann"},
		"End":    {func(st *sessiontest.Site, c *http.Client) { st.End(c) }, 409, ""},
		"Expire": {func(st *sessiontest.Site, c *http.Client) { st.Expire(c) }, 200, ""},
		"Full":   {func(st *sessiontest.Site, _ *http.Client) { st.Full() }, 503, "ann"},
		"Busy":   {func(st *sessiontest.Site, c *http.Client) { st.Busy(c) }, 503, "ann"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := sessiontest.New(t, middleware.Options{LockWait: 50 * time.Millisecond})
			st.Serve(devices(st.Sessions))
			ann := st.Client(asAnn)
			tt.happens(st, ann)
			want(t, ann, st.URL+"/set", tt.status, "*")
			if user := st.Session(ann).User(); user != tt.user {
				t.Errorf("the session is of %q, want %q", user, tt.user)
			}
		})
	}
}
