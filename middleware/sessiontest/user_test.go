package sessiontest_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/middleware/sessiontest"
	"github.com/a2139e8d/latchkey/session"
)

func asAnn(s *session.Session) {
	s.Login("ann")
	s.Set("n", "1")
}

// A client may be logged in, and then the session says as whom. What the program does with that, the
// test sees.
func TestAClientWhoIsLoggedIn(t *testing.T) {
	t.Parallel()
	st := served(t, middleware.Options{})
	laptop, phone, guest := st.Client(asAnn), st.Client(asAnn), st.Client(one)
	list, err := st.Sessions.List(t.Context(), "ann")
	if err != nil || len(list) != 2 || list[0].ID != st.Session(phone).ID() && list[1].ID != st.Session(phone).ID() {
		t.Errorf("ann has %+v, %v", list, err)
	}
	want(t, guest, st.URL+"/login-as?user=bob", 200, "")
	want(t, laptop, st.URL+"/end-others", 200, "1")
	for c, user := range map[*http.Client]string{laptop: "ann", phone: "", guest: "bob"} {
		if got := st.Session(c).User(); got != user {
			t.Errorf("the session is of %q, want %q", got, user)
		}
	}
}

// What happens to sessions of guests, happens to those of users in the same way.
func TestWhatHappensToASession(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		happens func(st *sessiontest.Site, c *http.Client)
		status  int  // of a request that writes
		lives   bool // afterwards
	}{
		"Change": {func(st *sessiontest.Site, c *http.Client) { st.Change(c, func(s *session.Session) { s.Set("n", "2") }) }, 200, true},
		"End":    {func(st *sessiontest.Site, c *http.Client) { st.End(c) }, 409, false},
		"Expire": {func(st *sessiontest.Site, c *http.Client) { st.Expire(c) }, 200, false},
		"Full":   {func(st *sessiontest.Site, _ *http.Client) { st.Full() }, 503, true},
		"Busy":   {func(st *sessiontest.Site, c *http.Client) { st.Busy(c) }, 503, true},
	} {
		for user, begin := range map[string]func(*session.Session){"ann": asAnn, "": one} {
			t.Run(name+" "+user, func(t *testing.T) {
				t.Parallel()
				st := served(t, middleware.Options{LockWait: 50 * time.Millisecond})
				c := st.Client(begin)
				id := st.Session(c).ID()
				tt.happens(st, c)
				want(t, c, st.URL+"/set?n=3", tt.status, "*")
				if s := st.Session(c); (s.ID() == id && !s.IsNew()) != tt.lives || tt.lives && s.User() != user {
					t.Errorf("session %q of %q is now %q of %q", id, user, s.ID(), s.User())
				}
			})
		}
	}
}
