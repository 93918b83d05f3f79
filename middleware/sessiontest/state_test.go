package sessiontest_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/middleware/sessiontest"
	"github.com/a2139e8d/latchkey/session"
)

// Whatever the program's options are, a client has its session.
func TestAClientHasItsSession(t *testing.T) {
	t.Parallel()
	old, key := []byte(strings.Repeat("o", 32)), []byte(strings.Repeat("k", 32))
	for name, o := range map[string]middleware.Options{
		"defaults": {},
		"cookie":   {Cookie: http.Cookie{Name: "sid", Path: "/shop/", Domain: "example.org", MaxAge: 3600}},
		"keys":     {Keys: [][]byte{key, old}},
		"times":    {TTL: time.Minute, Lifetime: time.Hour},
		"reading":  {Mode: func(*http.Request) middleware.Mode { return middleware.ReadOnly }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := sessiontest.New(t, o)
			st.Serve(http.StripPrefix("/shop", app(st.Sessions)))
			ann, bob := st.Client(one), st.Client(func(s *session.Session) { s.Set("n", "2") })
			guest := st.Client(nil)
			want(t, ann, st.URL+"/shop/get", 200, "1")
			want(t, bob, st.URL+"/shop/get", 200, "2")
			want(t, guest, st.URL+"/shop/get", 200, "")
			if n, _ := session.Get[string](st.Session(ann), "n"); n != "1" {
				t.Errorf("Session has %q", n)
			}
			if s := st.Session(guest); !s.IsNew() || s.ID() != "" {
				t.Errorf("the guest has session %q", s.ID())
			}
		})
	}
}

// A program whose clients have tokens is asked with the token of a client's session. Its hooks are
// not called for what the test does.
func TestTokenOfAClient(t *testing.T) {
	t.Parallel()
	o := middleware.Options{Token: middleware.Bearer, Cookie: http.Cookie{Name: "api"}}
	o.Hooks.Begin = func(_ context.Context, id string) { t.Errorf("session %s was begun by the program", id) }
	st := sessiontest.New(t, o)
	st.Serve(app(st.Sessions))
	ann := st.Client(one)
	want(t, ann, st.URL+"/get", 200, "") // the cookie is nothing to the program
	w, req := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/get", nil)
	req.Header.Set("Authorization", "Bearer "+st.Token(ann))
	app(st.Sessions).ServeHTTP(w, req)
	if w.Body.String() != "1" {
		t.Errorf("answer %q", w.Body)
	}
	if id, ok := st.Sessions.ID(st.Token(ann)); !ok || id != st.Session(ann).ID() {
		t.Errorf("the token is of %q, the session is %q", id, st.Session(ann).ID())
	}
}

// Session follows what handlers do: values, a new id at the login, and the end.
func TestSessionIsWhatIsStored(t *testing.T) {
	t.Parallel()
	st := served(t, middleware.Options{})
	c := st.Client(nil)
	want(t, c, st.URL+"/set?n=5", 200, "")
	before := st.Session(c)
	if n, _ := session.Get[string](before, "n"); n != "5" || before.IsNew() || before.ID() == "" {
		t.Errorf("n is %q in session %q", n, before.ID())
	}
	want(t, c, st.URL+"/login", 200, "")
	after := st.Session(c)
	if n, _ := session.Get[string](after, "n"); n != "5" || after.ID() == before.ID() {
		t.Errorf("n is %q in session %q, which was %q", n, after.ID(), before.ID())
	}
	want(t, c, st.URL+"/logout", 200, "")
	if s := st.Session(c); !s.IsNew() || s.Len() != 0 {
		t.Errorf("%d values after the logout", s.Len())
	}
}

// While a session is busy, requests that need it wait, and those that only read do not.
func TestBusy(t *testing.T) {
	t.Parallel()
	st := served(t, middleware.Options{LockWait: 20 * time.Millisecond, Mode: func(r *http.Request) middleware.Mode {
		if r.URL.Path == "/get" {
			return middleware.ReadOnly
		}
		return middleware.Exclusive
	}})
	ann, bob := st.Client(one), st.Client(one)
	release := st.Busy(ann)
	want(t, ann, st.URL+"/set?n=2", 503, "*")
	want(t, ann, st.URL+"/get", 200, "1")
	want(t, bob, st.URL+"/set?n=2", 200, "")
	release()
	release() // does nothing
	want(t, ann, st.URL+"/set?n=2", 200, "")
	want(t, ann, st.URL+"/get", 200, "2")
	st.Busy(ann) // until the test ends
}

// A request whose lock is lost does not save, and its context ends. The next one is not disturbed.
func TestLose(t *testing.T) {
	t.Parallel()
	st := sessiontest.New(t, middleware.Options{})
	ann := st.Client(one)
	st.Serve(st.Sessions.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Set("n", "2")
		if r.URL.Path == "/lose" {
			st.Lose(ann)
			<-r.Context().Done()
		}
	})))
	want(t, ann, st.URL+"/lose", 503, "*")
	if n, _ := session.Get[string](st.Session(ann), "n"); n != "1" {
		t.Errorf("n is %q, though the lock was lost", n)
	}
	want(t, ann, st.URL+"/", 200, "")
}

// Time passes in Redis as it does for the test.
func TestIdleTimeout(t *testing.T) {
	t.Parallel()
	st := served(t, middleware.Options{TTL: 100 * time.Millisecond})
	begun := time.Now()
	ann := st.Client(one)
	for !st.Session(ann).IsNew() { // which does not put the timeout off
		if time.Since(begun) > 10*time.Second {
			t.Fatal("the session does not run out")
		}
	}
	if lived := time.Since(begun); lived < 50*time.Millisecond {
		t.Errorf("it ran out after %v", lived)
	}
}

// Redis is down as long as anybody wants it to be, and has kept its data.
func TestDown(t *testing.T) {
	t.Parallel()
	st := served(t, middleware.Options{})
	ann := st.Client(one)
	first, second := st.Down(), st.Down()
	want(t, ann, st.URL+"/get", 503, "*")
	first()
	first() // does nothing
	want(t, ann, st.URL+"/get", 503, "*")
	second()
	want(t, ann, st.URL+"/get", 200, "1")
}

// What cannot be done fails the test with a reason.
func TestMisuse(t *testing.T) {
	t.Parallel()
	for reason, test := range map[string]func(tb testing.TB){
		"Options.TTL": func(tb testing.TB) { sessiontest.New(tb, middleware.Options{TTL: -1}) },
		"before Serve": func(tb testing.TB) {
			st := sessiontest.New(tb, middleware.Options{})
			want(t, st.Client(nil), st.URL+"/", 501, "*")
		},
		"could not be made": func(tb testing.TB) {
			st := sessiontest.New(tb, middleware.Options{})
			st.Client(func(s *session.Session) { s.Set("n", make(chan int)) })
		},
		"Busy: the client has no session": func(tb testing.TB) {
			st := sessiontest.New(tb, middleware.Options{})
			st.Busy(st.Client(nil))
		},
		"End: the client has no session": func(tb testing.TB) {
			st := sessiontest.New(tb, middleware.Options{})
			st.End(&http.Client{})
		},
		"copy": func(tb testing.TB) {
			st := served(tb, middleware.Options{})
			st.Session(st.Client(one)).Set("n", "2")
		},
		"Change: the client has no session": func(tb testing.TB) {
			st := served(tb, middleware.Options{})
			st.Change(st.Client(nil), func(*session.Session) {})
		},
		"no request holds": func(tb testing.TB) {
			st := sessiontest.New(tb, middleware.Options{})
			st.Lose(st.Client(one))
		},
		"a request holds": func(tb testing.TB) {
			st := sessiontest.New(tb, middleware.Options{})
			ann := st.Client(one)
			st.Busy(ann)
			st.Expire(ann)
		},
		"store: loading": func(tb testing.TB) {
			st := sessiontest.New(tb, middleware.Options{})
			ann := st.Client(one)
			st.Down()
			st.Session(ann)
		},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			wantFailure(t, test, reason)
		})
	}
}
