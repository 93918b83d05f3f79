package middleware_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// P4: what a request does, and where the client's cookies lead, together decide the response and what becomes of
// the cookies.
func TestWhatAnAnswerDoesToTheCookies(t *testing.T) {
	t.Parallel()
	const (
		leaves  = ""
		begins  = "sets the guest's"
		enters  = "sets the member's, deletes the guest's"
		refused = "409"

		dropsGuest, dropsMember, dropsBoth = "deletes the guest's", "deletes the member's", "deletes the member's, deletes the guest's"
	)
	doing := map[string]func(s *session.Session){
		"nothing":          func(s *session.Session) { s.Len() },
		"set":              func(s *session.Session) { s.Set("n", 7) },
		"renew":            func(s *session.Session) { s.Renew() },
		"enter":            func(s *session.Session) { s.Renew(); s.Set("n", 7) },
		"login":            func(s *session.Session) { s.Login("ann") },
		"logout":           func(s *session.Session) { s.Destroy() },
		"set-and-logout":   func(s *session.Session) { s.Set("n", 7); s.Destroy() },
		"fail-and-logout":  func(s *session.Session) { s.Set("n", make(chan int)); s.Destroy() }, // out is out
		"login-and-logout": func(s *session.Session) { s.Login("ann"); s.Set("n", 7); s.Destroy() },
	}
	dead := map[string]string{"nothing": leaves, "set": begins, "renew": leaves, "enter": enters, "login": enters, "set?flush": begins}
	for cookies, row := range map[string]map[string]string{
		"none": {"nothing": leaves, "set": begins, "renew": leaves, "enter": enters, "login": enters, "logout": leaves,
			"set-and-logout": leaves, "login-and-logout": leaves, "nothing?flush": leaves, "set?flush": begins},
		"a guest's": {"nothing": leaves, "set": leaves, "renew": enters, "enter": enters, "login": enters, "logout": dropsGuest,
			"set-and-logout": dropsGuest, "fail-and-logout": dropsGuest, "login-and-logout": dropsGuest, "set?flush": leaves},
		"a guest's, unknown": also(dead, map[string]string{"logout": dropsGuest, "login-and-logout": dropsGuest}),
		"a guest's, ended":   also(dead, map[string]string{"logout": dropsGuest, "login-and-logout": dropsGuest}),
		"a guest's, moved": {"nothing": leaves, "set": refused, "renew": leaves, "enter": enters, "login": enters, "logout": dropsGuest,
			"set-and-logout": dropsGuest, "set?flush": refused},
		"a guest's, moved, and a page": also(dead, map[string]string{"logout": dropsGuest}),
		"a member's": {"nothing": leaves, "set": leaves, "renew": enters, "enter": enters, "login": enters, "logout": dropsMember,
			"set-and-logout": dropsMember, "login-and-logout": dropsMember, "set?flush": leaves},
		"a member's, unknown": also(dead, map[string]string{"logout": dropsMember}),
		"a member's, ended":   also(dead, map[string]string{"logout": dropsMember}),
		"a member's, moved": {"nothing": leaves, "set": refused, "renew": refused, "enter": refused, "login": enters, "logout": dropsMember,
			"set?flush": refused},
		"a member's, moved, and a page": also(dead, map[string]string{"renew": refused, "enter": refused, "logout": dropsMember}),
		"a member's, and a guest's":     {"nothing": leaves, "set": leaves, "renew": enters, "login": enters, "logout": dropsBoth, "set?flush": leaves},
		"a member's, ended, and a guest's": {"nothing": leaves, "set": leaves, "renew": enters, "login": enters, "logout": dropsBoth,
			"set?flush": leaves},
		"a member's, moved, and a guest's": {"nothing": leaves, "set": refused, "renew": refused, "enter": refused, "login": enters,
			"logout": dropsBoth, "set?flush": refused},
		"a member's, moved, a guest's, and a page": {"nothing": leaves, "set": leaves, "renew": refused, "login": enters, "logout": dropsBoth},
	} {
		inFakeTime(t, cookies, func(t *testing.T, r *redistest.Server) {
			s := siteWith(t, r, middleware.Options{}, "/do/{what}", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
				doing[req.PathValue("what")](s)
				if req.URL.RawQuery == "flush" {
					w.(http.Flusher).Flush()
				}
			})
			for what, want := range row {
				v := with(t, s.cookiesThat(t, r, cookies)...)
				records := len(r.Keys(t))
				ask := v.background
				if strings.HasSuffix(cookies, "a page") {
					ask = v.navigate
				}
				a := ask("POST", s.URL+"/do/"+what)
				got := whatItDoes(a)
				if got != want {
					t.Errorf("%s: the answer %s, want: %s", what, got, want)
				}
				for _, c := range a.Cookies() {
					if c.MaxAge >= 0 && what != "renew" && what != "login" {
						with(t, c).get(s.URL+"/get").want(t, 200, "7")
					}
				}
				if what != "login-and-logout" && (want == refused || want == leaves && !strings.HasPrefix(what, "set")) && len(r.Keys(t)) != records {
					t.Errorf("%s: there were %d keys, and now %v", what, records, r.Keys(t))
				}
			}
		})
	}
}

func also(row, more map[string]string) map[string]string {
	all := maps.Clone(row)
	maps.Copy(all, more)
	return all
}

// cookiesThat returns the cookies of a client with these sessions: "a guest's" or "a member's", which has ended,
// has moved, or is not known any more.
func (s *site) cookiesThat(t *testing.T, r *redistest.Server, lead string) (cookies []*http.Cookie) {
	t.Helper()
	for _, one := range strings.Split(strings.ReplaceAll(lead, ", and ", ", "), ", a ") {
		path, _, _ := strings.Cut(strings.TrimPrefix(one, "a "), ",")
		if path != "guest's" && path != "member's" {
			continue
		}
		v := newVisitor(t)
		v.get(s.URL+"/add").want(t, 200, "1")
		if path == "member's" {
			v.get(s.URL+"/login").want(t, 200, "")
		}
		c := v.cookie(s)
		id := v.get(s.URL + "/id").body
		switch _, fate, _ := strings.Cut(one, ", "); strings.TrimSuffix(fate, ", a page") {
		case "ended":
			must(t, s.sessions.End(t.Context(), id))
		case "unknown":
			r.Do(t, "DEL", recordOf(id))
		case "moved":
			v.get(s.URL+"/login").want(t, 200, "")
		}
		cookies = append(cookies, c)
	}
	return cookies
}

// whatItDoes says what an answer does to the client's cookies.
func whatItDoes(a answer) string {
	if a.StatusCode != http.StatusOK {
		return strconv.Itoa(a.StatusCode)
	}
	var all []string
	for _, c := range a.Cookies() {
		verb, whose := "sets", "guest's"
		if c.MaxAge < 0 {
			verb = "deletes"
		}
		if c.Name == "sid-login" {
			whose = "member's"
		}
		all = append(all, verb+" the "+whose)
	}
	return strings.Join(all, ", ")
}

// P4: requests are served in turn. The write that came before the logout is saved, and the one that waited behind it
// begins a guest's session, which has nothing of the old one.
func TestAWaitingRequestFindsTheSessionEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s, v := begun(t, r, middleware.Options{}, app())
		old := with(t, v.cookies(s)...)
		free := old.hold(s.URL + "/pause")
		leaving := v.start(s.URL + "/logout")
		synctest.Wait()
		late := old.start(s.URL + "/add")
		synctest.Wait()
		free().want(t, 200, "stored")
		(<-leaving).want(t, 200, "")
		(<-late).want(t, 200, "1")
		old.get(s.URL+"/get").want(t, 200, "0")
		if n := len(v.cookies(s)); n != 0 {
			t.Errorf("the visitor still has %d cookies", n)
		}
	})
}

// P4: a write that comes after the logout brings nothing back, and one that comes after a login is refused, since
// its client is about to have the new cookie.
func TestAWriteAfterTheEndBringsNothingBack(t *testing.T) {
	onEach(t, func(t *testing.T, r *redistest.Server) {
		s := newSite(t, r.Pool(t, 4), middleware.Options{}, app())
		for end, statusOfAdd := range map[string]int{"/logout": 200, "/login": 409} {
			v := s.visitor(t)
			old := with(t, v.cookies(s)...)
			record, lock := keysOf(v.get(s.URL + "/id").body)
			v.get(s.URL+end).want(t, 200, "")
			stone, _ := r.Get(t, record)
			for path, status := range map[string]int{"/add": statusOfAdd, "/get": 200, "/logout": 200, "/nothing": 200} {
				old.get(s.URL+path).want(t, status, "*")
			}
			old.get(s.URL+"/get").want(t, 200, "0")
			if now, _ := r.Get(t, record); now != stone {
				t.Errorf("the tombstone %s became %s", stone, now)
			}
			if r.Exists(t, lock) {
				t.Error("a lock was taken on an ended session")
			}
			if end == "/login" {
				v.get(s.URL+"/get").want(t, 200, "1") // under the new id
			}
		}
	})
}

// P4: a new id takes the data and the age of the old one with it.
func TestRenewMovesTheSession(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s, v := begunWith(t, r, middleware.Options{}, "/renew", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) { s.Renew() })
		before := v.get(s.URL + "/id").body
		if a := v.get(s.URL + "/renew"); !a.sets() {
			t.Fatalf("no new cookie: %v", a.Header)
		}
		if after := v.get(s.URL + "/id").body; before == after {
			t.Error("the id is still the old one")
		}
		v.get(s.URL+"/get").want(t, 200, "1")
		if n := len(r.Keys(t)); n != 2 {
			t.Errorf("keys are %v; want the record and the tombstone", r.Keys(t))
		}
	})
}

// P3: a holder whose lock has expired, or is gone, cannot overwrite the next holder's record.
func TestAStaleHolderCannotWrite(t *testing.T) {
	onEach(t, func(t *testing.T, r *redistest.Server) {
		const maxHold = 10 * time.Second
		s, v := begun(t, r, middleware.Options{MaxHold: maxHold}, app())
		elsewhere := newSite(t, r.Pool(t, 4), middleware.Options{}, app())
		_, lock := keysOf(v.get(s.URL + "/id").body)
		free := v.hold(s.URL + "/pause")
		if r.IsReal() {
			r.Do(t, "DEL", lock)
		} else {
			redistest.Elapse(maxHold)
		}
		with(t, v.cookies(s)...).get(elsewhere.URL+"/add").want(t, 200, "2")
		free().want(t, 503, "*")
		v.get(s.URL+"/get").want(t, 200, "2")
		if len(s.log.Lines("lock was lost")) != 1 {
			t.Errorf("log:\n%s", s.log)
		}
	})
}

// P4: no visitor is shut out. Whatever has ended the session, the visitor goes on as a guest, and can log in at
// once. Only if a login's answer is lost do scripts get a 409, for a minute, and no cookie.
func TestNobodyIsShutOut(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, s *site, v *visitor){
		"the answer to a login is lost": func(t *testing.T, s *site, v *visitor) {
			with(t, v.cookies(s)...).get(s.URL+"/login").want(t, 200, "")
		},
		"the answer to a logout is lost": func(t *testing.T, s *site, v *visitor) {
			with(t, v.cookies(s)...).get(s.URL+"/logout").want(t, 200, "")
		},
		"an administrator ends it": func(t *testing.T, s *site, v *visitor) {
			must(t, s.sessions.End(t.Context(), v.get(s.URL+"/id").body))
		},
	} {
		for _, mode := range []middleware.Mode{middleware.Exclusive, middleware.Lazy} {
			inFakeTime(t, fmt.Sprintf("%s, %v", name, mode), func(t *testing.T, r *redistest.Server) {
				mux := welcoming()
				handler := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					_, err := session.Start(req.Context())
					must(t, err)
					mux.ServeHTTP(w, req)
				})
				s := newSite(t, r.Pool(t, 4), middleware.Options{Mode: func(*http.Request) middleware.Mode { return mode }}, handler)
				begin := func() (v *visitor, old string) {
					v = newVisitor(t)
					v.get(s.URL+"/add").want(t, 200, "1")
					old = v.get(s.URL + "/id").body
					end(t, s, v)
					return v, old
				}

				v, old := begin()
				lost := name == "the answer to a login is lost"
				for i, a := range []answer{
					v.background("POST", s.URL+"/add"), v.get(s.URL + "/add"), // which does not say what it is
				} {
					if !lost {
						a.want(t, 200, fmt.Sprint(i+1)) // in a new session, which has nothing of the old one
						continue
					}
					a.want(t, 409, "The session was ended by another request. Nothing was saved. Please try again.")
					if a.sets() {
						t.Errorf("a background request touches the cookie: %v", a.Header)
					}
				}
				if lost {
					a := v.navigate("GET", s.URL+"/add")
					a.want(t, 200, "1")
					if !a.sets() || a.Header.Get("Cache-Control") != "no-store" {
						t.Errorf("header %v", a.Header)
					}
					v.background("POST", s.URL+"/add").want(t, 200, "2")
				}
				if now := v.get(s.URL + "/id").body; now == old {
					t.Error("the dead id is used again")
				}

				v, _ = begin()
				v.background("POST", s.URL+"/login").want(t, 200, "")
				v.get(s.URL+"/user").want(t, 200, "ann")
				v.get(s.URL+"/get").want(t, 200, "0")
			})
		}
	}
}

// P4: a double click on "Log in". The browser drops the first request, but its handler has
// begun, and what it does is saved. The second one is logged in.
func TestADoubleClickOnLogin(t *testing.T) {
	onEach(t, func(t *testing.T, r *redistest.Server) {
		mux := welcoming()
		busy, free := make(chan struct{}, 2), make(chan struct{})
		mux.HandleFunc("/slow-login", func(w http.ResponseWriter, req *http.Request) {
			busy <- struct{}{}
			<-free // the password is being hashed
			mux.ServeHTTP(w, as(req, "/login"))
		})
		s, v := begun(t, r, middleware.Options{}, mux)
		old := v.cookies(s)

		ctx, drop := context.WithCancel(t.Context())
		first, second := make(chan answer, 1), make(chan answer, 1)
		go func() { first <- v.fetch(ctx, "POST", s.URL+"/slow-login", "navigate") }()
		<-busy
		drop()
		if a := <-first; a.err == nil {
			t.Fatalf("the first click was answered: %d", a.StatusCode)
		}
		go func() { second <- v.navigate("POST", s.URL+"/slow-login") }()
		close(free)
		a := <-second
		a.want(t, 200, "")
		if !a.sets() {
			t.Error("the second click got no cookie")
		}
		v.get(s.URL+"/user").want(t, 200, "ann")
		with(t, old...).get(s.URL+"/user").want(t, 200, "") // and the old id opens neither
		with(t, old...).background("POST", s.URL+"/add").want(t, 409, "*")
	})
}

// P4: a script's request was under way when the visitor logged in, and is answered after it.
// Its response does not take the new cookie away.
func TestABackgroundAnswerDoesNotUndoALogin(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		came, pass := make(chan struct{}), make(chan struct{})
		s, v := begun(t, r, middleware.Options{Mode: func(req *http.Request) middleware.Mode {
			if req.Header.Get("X-Late") != "" {
				close(came)
				<-pass
			}
			return middleware.Exclusive
		}}, welcoming())
		late, _ := http.NewRequest("POST", s.URL+"/add", nil)
		late.Header.Set("X-Late", "yes")
		late.Header.Set("Sec-Fetch-Mode", "cors")
		saving := make(chan answer, 1)
		go func() { saving <- v.do(late) }()
		<-came
		v.navigate("POST", s.URL+"/login").want(t, 200, "")
		close(pass)
		(<-saving).want(t, 409, "*")
		v.get(s.URL+"/user").want(t, 200, "ann")
	})
}

// P4: a page that writes was under way in another tab when the visitor logged in, and is answered after it. It
// begins a guest's session, and the visitor stays logged in.
func TestAPageThatCrossesALoginDoesNotUndoIt(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s, v := begun(t, r, middleware.Options{}, welcoming())
		old := with(t, v.cookies(s)...) // sent before the login, answered after it
		v.navigate("POST", s.URL+"/login").want(t, 200, "")

		a := old.navigate("GET", s.URL+"/add")
		a.want(t, 200, "1")
		v.Jar.SetCookies(a.Request.URL, a.Cookies())
		v.get(s.URL+"/user").want(t, 200, "ann")
		v.background("POST", s.URL+"/add").want(t, 200, "2")
	})
}

// P4: what ends a session that a request holds ends what is under way in it, also a login. The
// visitor's next try begins a new session.
func TestALoginInASessionThatIsEndedMeanwhile(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		mux := welcoming()
		lose := true
		mux.HandleFunc("/cut", func(w http.ResponseWriter, req *http.Request) {
			if lose {
				lose = false
				r.Do(t, "DEL", recordOf(session.FromContext(req.Context()).ID()))
			}
			mux.ServeHTTP(w, as(req, "/login"))
		})
		s, v := begun(t, r, middleware.Options{}, mux)
		a := v.navigate("POST", s.URL+"/cut")
		a.want(t, 503, "*")
		if a.sets() {
			t.Errorf("header %v", a.Header)
		}
		synctest.Wait()
		if keys := r.Keys(t); len(keys) > 0 {
			t.Errorf("what the login had stored is still there: %v", keys)
		}
		v.navigate("POST", s.URL+"/cut").want(t, 200, "")
		v.get(s.URL+"/user").want(t, 200, "ann")
	})
}

// P9: a Start that is repeated does not remember what an earlier one came for: if the session is
// unknown by then, the new one has an id that nobody knows.
func TestARepeatedStartAdoptsNoID(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		var old string
		mux := app()
		mux.HandleFunc("/lazy", func(_ http.ResponseWriter, req *http.Request) {
			if _, err := session.Start(req.Context()); err == nil {
				t.Error("the session is held, and Start has it")
			}
			r.Do(t, "DEL", recordOf(old), recordOf(old)+".lock")
			s, err := session.Start(req.Context())
			must(t, err)
			s.Set("n", 7)
		})
		s, v := begun(t, r, middleware.Options{LockWait: time.Second, Mode: byPath(map[string]middleware.Mode{"/lazy": middleware.Lazy})}, mux)
		old = v.get(s.URL + "/id").body
		r.Do(t, "SET", recordOf(old)+".lock", "another", "PX", 60_000)
		v.get(s.URL+"/lazy").want(t, 200, "")
		if r.Exists(t, recordOf(old)) {
			t.Error("the old id was adopted")
		}
		v.get(s.URL+"/get").want(t, 200, "7")
	})
}
