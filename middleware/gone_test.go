package middleware_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

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

// P4: A write after the logout brings nothing back. A write after a login is refused, since its client is about to
// have the new cookie.
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
				v.get(s.URL+"/get").want(t, 200, "1") // under the new ID
			}
		}
	})
}

// P4: a new ID takes the data and the age of the old one with it.
func TestRenewMovesTheSession(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s, v := begunWith(t, r, middleware.Options{}, "/renew", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) { s.Renew() })
		before := v.get(s.URL + "/id").body
		if a := v.get(s.URL + "/renew"); !a.sets() {
			t.Fatalf("no new cookie: %v", a.Header)
		}
		if after := v.get(s.URL + "/id").body; before == after {
			t.Error("the ID is still the old one")
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

// P4: No visitor is shut out. Whatever has ended the session, the visitor goes on as a guest, and can log in at once.
// Only if the response to a login is lost do scripts get a 409, for a minute, and no cookie.
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
					a.want(t, 409, "The session was renewed by another request. Nothing was saved. Please try again.")
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
					t.Error("the dead ID is used again")
				}

				v, _ = begin()
				v.background("POST", s.URL+"/login").want(t, 200, "")
				v.get(s.URL+"/user").want(t, 200, "ann")
				v.get(s.URL+"/get").want(t, 200, "0")
			})
		}
	}
}

// P4: If a session is ended while a request holds it, what is under way in it ends, too, even a login. The visitor's
// next try begins a new session.
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

// P9: A Start that is repeated does not keep the ID that an earlier Start has asked for. If that session is unknown
// by then, the new session has an ID that nobody knows.
func TestARepeatedStartAdoptsNoID(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		var old string
		mux := app()
		mux.HandleFunc("/lazy", func(_ http.ResponseWriter, req *http.Request) {
			if _, err := session.Start(req.Context()); err == nil {
				t.Error("Start has opened a session that another holder has")
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
			t.Error("the old ID was adopted")
		}
		v.get(s.URL+"/get").want(t, 200, "7")
	})
}

// P4: If another process ends a guest's session while a request holds it, the request behind it in line may come later, and
// still be lent the session: it is refused as well, also if it is a navigation. A user's session is not lent.
func TestAGuestsSessionIsLentAfterItsEnd(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"guest": 409, "user": 200} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			mux := app()
			handle(mux, "/user", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) { s.Login("ann") })
			here, v := begun(t, r, middleware.Options{}, mux)
			elsewhere := newSite(t, r.Pool(t, 4), middleware.Options{}, mux)
			if name == "user" {
				v.post(here.URL+"/user").want(t, 200, "")
			}
			id := v.get(here.URL + "/id").body
			free := v.hold(here.URL + "/pause")
			must(t, elsewhere.sessions.End(t.Context(), id))
			time.Sleep(time.Millisecond) // without it, both would come at one moment of the fake time
			behind := make(chan answer)
			next := with(t, v.cookies(here)...)
			go func() { behind <- next.do(navigation(t, here.URL+"/add")) }()
			synctest.Wait()
			free().want(t, 409, "*")
			(<-behind).want(t, status, "*")
			next.do(navigation(t, here.URL+"/add")).want(t, 200, "*")
		})
	}
}

func navigation(t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	must(t, err)
	req.Header.Set("Sec-Fetch-Mode", "navigate")
	return req
}
