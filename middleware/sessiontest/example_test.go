package sessiontest_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/middleware/sessiontest"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// The guide shows parts of the functions below. The examples of the documentation are in files of their own.

// routes is the program under test.
func routes(sessions *middleware.Sessions, charge func()) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /add", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		cart, _ := session.Get[[]string](s, "cart")
		s.Set("cart", append(cart, r.FormValue("item")))
	})
	mux.HandleFunc("POST /order", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		if _, ok := session.Pop[[]string](s, "cart"); !ok {
			http.Error(w, "the cart is empty", http.StatusBadRequest)
			return
		}
		if err := s.Commit(r.Context()); err != nil {
			return // before the card is charged
		}
		charge()
		fmt.Fprintln(w, "ordered")
	})
	mux.HandleFunc("POST /logout", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Destroy()
	})
	return sessions.Handler(mux)
}

var (
	t       *testing.T // the test that runs the examples
	charges int
)

func charge() { charges++ }

func withTea(s *session.Session) { s.Set("cart", []string{"tea"}) }

func post(c *http.Client, url string) (status int) {
	res, err := c.Post(url, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode
}

// A client has a session that the test has filled, and the test reads what the handler has stored.
func showClient() {
	st := sessiontest.New(t, middleware.Options{})
	st.Serve(routes(st.Sessions, charge))

	ann := st.Client(func(s *session.Session) { s.Set("cart", []string{"tea"}) })
	res, err := ann.Post(st.URL+"/add?item=milk", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	cart, _ := session.Get[[]string](st.Session(ann), "cart")
	if res.StatusCode != http.StatusOK || len(cart) != 2 {
		t.Errorf("status %d, cart %q", res.StatusCode, cart)
	}
}

// The ID shows whether a login has renewed the session, IsNew whether a logout has ended it.
func showSession() {
	st := sessiontest.New(t, middleware.Options{})
	st.Serve(routes(st.Sessions, charge))
	ann := st.Client(withTea)

	post(ann, st.URL+"/logout")
	if !st.Session(ann).IsNew() {
		t.Error("the logout has left the session")
	}
}

// Another request has the session. The client's request waits for LockWait, and gives up.
func showBusy() {
	st := sessiontest.New(t, middleware.Options{LockWait: 50 * time.Millisecond})
	st.Serve(routes(st.Sessions, charge))
	ann := st.Client(withTea)

	release := st.Busy(ann)
	if status := post(ann, st.URL+"/order"); status != http.StatusServiceUnavailable {
		t.Errorf("status %d while the session was busy", status)
	}
	release()
	if status := post(ann, st.URL+"/order"); status != http.StatusOK {
		t.Errorf("status %d after that", status)
	}
}

// The lock is lost while the handler runs, so the handler cannot save any more.
func showLose() {
	st := sessiontest.New(t, middleware.Options{})
	ann := st.Client(withTea)
	st.Serve(st.Sessions.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		st.Lose(ann)
		s := session.FromContext(r.Context())
		s.Delete("cart")
		if err := s.Commit(r.Context()); !errors.Is(err, store.ErrLost) {
			t.Errorf("Commit: %v", err)
		}
	})))
	if status := post(ann, st.URL); status != http.StatusServiceUnavailable {
		t.Errorf("status %d", status)
	}
}

// The session was ended elsewhere, but this page still writes: as a guest.
func showEnd() {
	st := sessiontest.New(t, middleware.Options{})
	st.Serve(routes(st.Sessions, charge))
	ann := st.Client(func(s *session.Session) { s.Login("ann") })

	st.End(ann)
	if status := post(ann, st.URL+"/add?item=milk"); status != http.StatusOK || st.Session(ann).User() != "" {
		t.Errorf("status %d, user %q", status, st.Session(ann).User())
	}
}

// The visitor comes back after lunch.
func showExpire() {
	st := sessiontest.New(t, middleware.Options{})
	st.Serve(routes(st.Sessions, charge))
	ann := st.Client(withTea)

	st.Expire(ann)
	if status := post(ann, st.URL+"/order"); status != http.StatusBadRequest {
		t.Errorf("status %d, though the cart is gone", status)
	}
}

// While Redis is unavailable nothing is charged, and nothing is lost.
func showDown() {
	st := sessiontest.New(t, middleware.Options{})
	st.Serve(routes(st.Sessions, charge))
	ann := st.Client(withTea)

	up := st.Down()
	before := charges
	if status := post(ann, st.URL+"/order"); status != http.StatusServiceUnavailable || charges != before {
		t.Errorf("status %d, charged %d times", status, charges-before)
	}
	up()
	if status := post(ann, st.URL+"/order"); status != http.StatusOK {
		t.Errorf("status %d after that", status)
	}
}

// A full Redis does not store a change.
func showFull() {
	st := sessiontest.New(t, middleware.Options{})
	st.Serve(routes(st.Sessions, charge))
	ann := st.Client(withTea)

	free := st.Full()
	if status := post(ann, st.URL+"/add?item=milk"); status != http.StatusServiceUnavailable {
		t.Errorf("status %d while Redis was full", status)
	}
	free()
	if status := post(ann, st.URL+"/add?item=milk"); status != http.StatusOK {
		t.Errorf("status %d after that", status)
	}
}

// A value set after a Commit is lost. Without ExpectLateChange that would fail the test.
func showExpectLateChange() {
	st := sessiontest.New(t, middleware.Options{})
	st.Serve(st.Sessions.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		_ = s.Commit(r.Context())
		s.Set("flash", "ordered") // too late
	})))
	st.ExpectLateChange()
	if res, err := st.Client(withTea).Post(st.URL, "", nil); err == nil {
		res.Body.Close() // a 500, or a broken connection
	}
}
