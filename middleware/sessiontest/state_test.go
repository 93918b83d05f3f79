package sessiontest_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/middleware/sessiontest"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// A client has its session, whatever the program's options are.
func TestAClientHasItsSession(t *testing.T) {
	t.Parallel()
	old, key := []byte(strings.Repeat("old ", 8)), []byte(strings.Repeat("key ", 8))
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

// A program whose clients have tokens accepts the token of a client's session. Its hooks are not called for
// actions of the test.
func TestTokenOfAClient(t *testing.T) {
	t.Parallel()
	o := middleware.Options{Token: middleware.Bearer, Cookie: http.Cookie{Name: "api"}}
	o.Hooks.Begin = func(_ context.Context, id string) { t.Errorf("session %s was begun by the program", id) }
	st := sessiontest.New(t, o)
	st.Serve(app(st.Sessions))
	ann := st.Client(one)
	want(t, ann, st.URL+"/get", 200, "") // the program ignores the cookie
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

// The token of a user's session leads to the user, and the test can act on that session.
func TestTokenOfAUser(t *testing.T) {
	t.Parallel()
	st := sessiontest.New(t, middleware.Options{Token: middleware.Bearer})
	who := st.Sessions.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, session.FromContext(r.Context()).User())
	}))
	ann := st.Client(func(s *session.Session) { s.Login("ann") })
	wantUser := func(want string) {
		t.Helper()
		w, req := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
		req.Header.Set("Authorization", "Bearer "+st.Token(ann))
		who.ServeHTTP(w, req)
		if w.Body.String() != want || st.Session(ann).User() != want {
			t.Errorf("the user is %q, and %q in the store; want %q", w.Body, st.Session(ann).User(), want)
		}
	}
	wantUser("ann")
	st.End(ann)
	wantUser("")
}

// Session follows what handlers do: values, a new ID at the login, and the end.
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
	for !st.Session(ann).IsNew() { // Session does not extend the timeout
		if time.Since(begun) > 10*time.Second {
			t.Fatal("the session does not expire")
		}
	}
	if lived := time.Since(begun); lived < 50*time.Millisecond {
		t.Errorf("the session expired after %v", lived)
	}
}

// Redis is down until all calls of Down have been undone, and keeps its data.
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

// Misuse fails the test with a reason.
func TestMisuse(t *testing.T) {
	t.Parallel()
	for reason, test := range map[string]func(tb testing.TB, st *sessiontest.Site, ann *http.Client){
		"Options.TTL": func(tb testing.TB, _ *sessiontest.Site, _ *http.Client) {
			sessiontest.New(tb, middleware.Options{TTL: -1})
		},
		"before Serve": func(_ testing.TB, st *sessiontest.Site, ann *http.Client) {
			want(t, ann, st.URL+"/", 501, "*")
		},
		"Client: the session could not be opened or saved": func(_ testing.TB, st *sessiontest.Site, _ *http.Client) {
			st.Client(func(s *session.Session) { s.Set("n", make(chan int)) })
		},
		"Busy: the client has no session": func(_ testing.TB, st *sessiontest.Site, _ *http.Client) { st.Busy(st.Client(nil)) },
		"End: the client has no session":  func(_ testing.TB, st *sessiontest.Site, _ *http.Client) { st.End(&http.Client{}) },
		"Change: the client's session has ended or expired": func(_ testing.TB, st *sessiontest.Site, c *http.Client) {
			st.Expire(c)
			st.Change(c, func(s *session.Session) { s.Set("n", 2) })
		},
		"Change: the client has no session": func(_ testing.TB, st *sessiontest.Site, _ *http.Client) {
			st.Change(st.Client(nil), func(*session.Session) {})
		},
		"copy":             func(_ testing.TB, st *sessiontest.Site, ann *http.Client) { st.Session(ann).Set("n", "2") },
		"no request holds": func(_ testing.TB, st *sessiontest.Site, ann *http.Client) { st.Lose(ann) },
		"a request holds": func(_ testing.TB, st *sessiontest.Site, ann *http.Client) {
			st.Busy(ann)
			st.Expire(ann)
		},
		"store: loading": func(_ testing.TB, st *sessiontest.Site, ann *http.Client) {
			st.Down()
			st.Session(ann)
		},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			wantFailure(t, func(tb testing.TB) {
				st := sessiontest.New(tb, middleware.Options{})
				test(tb, st, st.Client(one))
			}, reason)
		})
	}
}

func asAnn(s *session.Session) {
	s.Login("ann")
	s.Set("n", "1")
}

// A client may be logged in, and then the session names the user. The test sees what the program does with
// it.
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

// What a test does to a session is no request of the program: its observers are not told.
func TestObserversSeeNoHiddenRequest(t *testing.T) {
	t.Parallel()
	var told atomic.Int32
	st := served(t, middleware.Options{Observers: []middleware.Observer{counting{&told}}})
	c := st.Client(one)
	st.Change(c, func(s *session.Session) { s.Set("n", "2") })
	if n := told.Load(); n != 0 {
		t.Errorf("%d requests were told", n)
	}
	want(t, c, st.URL+"/set?n=3", 200, "*")
	if n := told.Load(); n != 1 {
		t.Errorf("%d requests were told, want that of the program", n)
	}
}

// counting counts requests.
type counting struct{ requests *atomic.Int32 }

func (c counting) Observe(_ context.Context, e middleware.Event) {
	if _, ok := e.(*middleware.RequestEvent); ok {
		c.requests.Add(1)
	}
}

// Sessions of guests and of users behave in the same way.
func TestWhatHappensToASession(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		happens func(st *sessiontest.Site, c *http.Client)
		status  int  // of a request that writes
		lives   bool // afterwards
	}{
		"Change": {func(st *sessiontest.Site, c *http.Client) { st.Change(c, func(s *session.Session) { s.Set("n", "2") }) }, 200, true},
		"End":    {func(st *sessiontest.Site, c *http.Client) { st.End(c) }, 200, false},
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

// A full Redis behaves here as a real full Redis does.
func TestFullIsAsARealOne(t *testing.T) {
	t.Parallel()
	st := sessiontest.New(t, middleware.Options{})
	embedded := whatAFullRedisDoes(t, st.Sessions, func() func() { return st.Full() })

	r := redistest.Real(t, "--maxmemory-policy", "noeviction")
	o := middleware.Options{Keys: [][]byte{[]byte(strings.Repeat("key ", 8))}, Logger: slog.New(slog.DiscardHandler)}
	real, err := middleware.New(store.New(r.Pool(t, 4), store.Options{}), o)
	if err != nil {
		t.Fatal(err)
	}
	want := whatAFullRedisDoes(t, real, func() func() {
		r.Do(t, "CONFIG", "SET", "maxmemory", "1")
		return func() { r.Do(t, "CONFIG", "SET", "maxmemory", "0") }
	})
	if embedded != want {
		t.Errorf("embedded:\n%sreal:\n%s", embedded, want)
	}
}

// whatAFullRedisDoes returns the responses to all kinds of requests: first while Redis is full, or becomes
// full while the request holds its session, and then once more. Each request has its own session.
func whatAFullRedisDoes(t *testing.T, sessions *middleware.Sessions, fill func() (free func())) string {
	t.Helper()
	var duringHandler func()
	site := sessions.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		duringHandler()
		app(sessions).ServeHTTP(w, r)
	}))
	send := func(path string, cookies []*http.Cookie) *http.Response {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, nil)
		for _, c := range cookies {
			r.AddCookie(c)
		}
		w := httptest.NewRecorder()
		site.ServeHTTP(w, r)
		return w.Result()
	}
	answers := ""
	for _, path := range []string{"/get", "/set?n=2", "/set?n=1", "/login", "/login-as?user=ann", "/logout", "begin"} {
		for _, held := range []bool{false, true} {
			duringHandler = func() {}
			cookies := send("/set?n=1", nil).Cookies()
			if len(cookies) != 1 {
				t.Fatal("a session cannot be made")
			}
			if path == "begin" {
				path, cookies = "/set?n=1", nil
			}
			free := func() {}
			if held {
				duringHandler = func() { free = fill() }
			} else {
				free = fill()
			}
			full := send(path, cookies).Status
			free()
			duringHandler = func() {}
			again := send(path, cookies).Status
			answers += fmt.Sprintf("%s, held %v: %s, then %s\n", path, held, full, again)
		}
	}
	return answers
}

// afterwards serves a handler that changes its session after begin, and sends it a request.
func afterwards(tb testing.TB, st *sessiontest.Site, begin func(w http.ResponseWriter, r *http.Request)) {
	st.Serve(st.Sessions.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin(w, r)
		session.FromContext(r.Context()).Set("flash", "ordered")
	})))
	res, err := st.Client(one).Post(st.URL, "", nil)
	if err == nil {
		res.Body.Close()
	}
}

func commit(_ http.ResponseWriter, r *http.Request) {
	_ = session.FromContext(r.Context()).Commit(r.Context())
}

// A change that comes too late fails the test, with the call, the key and what had saved the session.
func TestALateChangeFailsTheTest(t *testing.T) {
	t.Parallel()
	for by, begin := range map[string]http.HandlerFunc{
		"Commit": commit,
		"Flush":  func(w http.ResponseWriter, _ *http.Request) { _ = http.NewResponseController(w).Flush() },
		"Options.Buffer": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(strings.Repeat("x", 70_000)))
		},
	} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			wantFailure(t, func(tb testing.TB) {
				afterwards(tb, sessiontest.New(tb, middleware.Options{}), begin)
			}, "Set", `"flash"`, by)
		})
	}
}

// An expected late change does not fail the test. A second one does, and so does an expected change that does
// not come.
func TestALateChangeMayBeExpected(t *testing.T) {
	t.Parallel()
	if failures := failuresOf(t, func(tb testing.TB) {
		afterwards(tb, sessiontest.New(tb, middleware.Options{}), func(http.ResponseWriter, *http.Request) {}) // in time
		st := sessiontest.New(tb, middleware.Options{})
		st.ExpectLateChange()
		afterwards(tb, st, commit)
	}); len(failures) > 0 {
		t.Errorf("the test fails with %q", failures)
	}
	wantFailure(t, func(tb testing.TB) {
		st := sessiontest.New(tb, middleware.Options{})
		st.ExpectLateChange()
		afterwards(tb, st, func(w http.ResponseWriter, r *http.Request) {
			commit(w, r)
			session.FromContext(r.Context()).Delete("expected")
		})
	}, "Set", `"flash"`)
	wantFailure(t, func(tb testing.TB) {
		sessiontest.New(tb, middleware.Options{}).ExpectLateChange()
	}, "1 late changes did not come")
}

// The program's own logger still gets everything.
func TestTheProgramsLogger(t *testing.T) {
	t.Parallel()
	var own strings.Builder
	failures := failuresOf(t, func(tb testing.TB) {
		st := sessiontest.New(tb, middleware.Options{Logger: slog.New(slog.NewTextHandler(&own, nil)).With("app", "shop")})
		st.ExpectLateChange()
		afterwards(tb, st, commit)
	})
	if len(failures) > 0 || !strings.Contains(own.String(), "changed after it was saved") || !strings.Contains(own.String(), "app=shop") {
		t.Errorf("failures %q, log %q", failures, own.String())
	}
}
