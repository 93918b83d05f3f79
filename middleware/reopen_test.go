package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// P1: a handler commits its session before slow work, and then goes on with the current data, which
// another process has written.
func TestReopenGoesOnWithWhatIsStoredByThen(t *testing.T) {
	onEach(t, func(t *testing.T, r *redistest.Server) {
		working, done := make(chan struct{}), make(chan struct{})
		mux := app()
		handle(mux, "/upload", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
			s.Set("begun", true)
			must(t, s.Commit(req.Context()))
			close(working)
			<-done
			must(t, s.Reopen(req.Context()))
			fmt.Fprint(w, add(s))
			must(t, s.Commit(req.Context()))
			must(t, s.Reopen(req.Context()))
			s.Set("done", true)
		})
		here, elsewhere := newSite(t, r.Pool(t, 4), middleware.Options{}, mux), newSite(t, r.Pool(t, 4), middleware.Options{}, mux)
		v := here.visitor(t)
		tab := with(t, v.cookies(here)...)
		slow := v.start(here.URL + "/upload")
		<-working
		tab.get(elsewhere.URL+"/add").want(t, 200, "2")
		tab.get(here.URL+"/add").want(t, 200, "3")
		close(done)
		a := <-slow
		a.want(t, 200, "4")
		if a.sets() {
			t.Errorf("it sets a cookie: %v", a.Header)
		}
		v.get(here.URL+"/get").want(t, 200, "4")
		v.get(here.URL+"/len").want(t, 200, "3")
	})
}

// The first commit begins a new visitor's session. Reopen opens it by the ID that it then has. The response has one
// cookie, which opens the session.
func TestTheAnswerHasOneCookieHoweverOftenItIsReopened(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ first, second func(*session.Session) }{
		"begun first":           {func(s *session.Session) { s.Set("a", 1) }, func(s *session.Session) { s.Set("b", 2) }},
		"begun first, read":     {func(s *session.Session) { s.Set("a", 1); s.Set("b", 2) }, func(s *session.Session) { s.Len() }},
		"begun second":          {func(s *session.Session) { s.Len() }, func(s *session.Session) { s.Set("a", 1); s.Set("b", 2) }},
		"asked for its ID":      {func(s *session.Session) { s.ID() }, func(s *session.Session) { s.Set("a", 1); s.Set("b", 2) }},
		"begun, then renewed":   {func(s *session.Session) { s.Set("a", 1) }, func(s *session.Session) { s.Renew(); s.Set("b", 2) }},
		"renewed, then changed": {func(s *session.Session) { s.Renew(); s.Set("a", 1) }, func(s *session.Session) { s.Set("b", 2) }},
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			s := siteWith(t, r, middleware.Options{}, "/twice", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
				test.first(s)
				must(t, s.Commit(req.Context()))
				must(t, s.Reopen(req.Context()))
				if got, want := s.IsNew(), strings.HasPrefix(name, "begun second") || strings.HasPrefix(name, "asked"); got != want {
					t.Errorf("IsNew is %v after Reopen", got)
				}
				test.second(s)
				must(t, s.Commit(req.Context()))
				fmt.Fprint(w, s.ID())
			})
			v := newVisitor(t)
			a := v.get(s.URL + "/twice")
			_ = a.cookie(t)
			v.get(s.URL+"/len").want(t, 200, "2")
			v.get(s.URL+"/id").want(t, 200, a.body)
		})
	}
}

// In mode ReadOnly, Reopen reads the session again, even while another request holds it. The session still cannot be
// changed.
func TestReopenInModeReadOnly(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		more, read := make(chan struct{}), make(chan int)
		handle(mux, "/watch", func(s *session.Session, _ http.ResponseWriter, req *http.Request) {
			must(t, s.Commit(req.Context()))
			for range more {
				must(t, s.Reopen(req.Context()))
				n, _ := session.Get[int](s, "n")
				must(t, s.Commit(req.Context()))
				read <- n
			}
			must(t, s.Reopen(req.Context()))
			s.Set("n", 100)
		})
		s, v := begun(t, r, middleware.Options{Mode: byPath(map[string]middleware.Mode{"/watch": middleware.ReadOnly})}, mux)
		watch := v.start(s.URL + "/watch")
		for n := 2; n < 5; n++ {
			v.get(s.URL+"/add").want(t, 200, fmt.Sprint(n))
			more <- struct{}{}
			if got := <-read; got != n {
				t.Errorf("read %d, want %d", got, n)
			}
		}
		free := v.hold(s.URL + "/pause")
		more <- struct{}{}
		if got := <-read; got != 4 {
			t.Errorf("read %d beside a holder, want 4", got)
		}
		free().want(t, 200, "stored")
		close(more)
		(<-watch).want(t, 500, "*") // ErrReadOnly
		v.get(s.URL+"/get").want(t, 200, "500")
	})
}

// Each Reopen may wait for LockWait, however long earlier ones have waited.
func TestEachReopenMayWait(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		st := store.New(r.Pool(t, 4), store.Options{})
		mux := app()
		const wait = 300 * time.Millisecond
		handle(mux, "/again", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
			must(t, s.Commit(req.Context()))
			h, _, err := records.Of(st).Take(t.Context(), s.ID(), records.Terms{})
			must(t, err)
			if err := s.Reopen(req.Context()); !errors.Is(err, store.ErrTimeout) || middleware.Status(err) != 503 {
				t.Errorf("Reopen = %v", err)
			}
			time.AfterFunc(wait/3, func() { h.Release(context.Background()) })
			must(t, s.Reopen(req.Context()))
			fmt.Fprint(w, add(s))
		})
		s := newSiteOn(t, st, middleware.Options{LockWait: wait}, mux)
		v := s.visitor(t)
		v.get(s.URL+"/again").want(t, 200, "2")
	})
}

// P2: once the response has begun, no cookie can be set. A commit that needs a cookie is not saved,
// and the response is cut off, so that no client takes it for a success. A logout needs no cookie.
func TestACommitThatNeedsACookieIsTooLateOnceTheAnswerHasBegun(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		visits bool // the visitor has a session
		change func(s *session.Session, ctx context.Context)
		fails  bool
		keys   int // in the session afterwards
	}{
		"a login":       {true, func(s *session.Session, _ context.Context) { s.Renew(); s.Set("user", "ann") }, true, 1},
		"a new session": {false, func(s *session.Session, _ context.Context) { s.Set("user", "ann") }, true, 0},
		"a remember":    {true, func(s *session.Session, _ context.Context) { add(s); s.Remember(month) }, true, 1},
		"a logout":      {true, func(s *session.Session, _ context.Context) { s.Destroy() }, false, 0},
		"a write":       {true, func(s *session.Session, _ context.Context) { s.Set("user", "ann") }, false, 2},
		"nothing":       {false, func(s *session.Session, _ context.Context) { s.Len() }, false, 0},
		"a second try": {true, func(s *session.Session, ctx context.Context) {
			s.Set("user", make(chan int))
			if s.Commit(ctx) == nil {
				t.Error("a channel was saved")
			}
			must(t, s.Reopen(ctx))
			s.Set("user", "ann")
		}, false, 2},
	} {
		for _, explicit := range []bool{true, false} {
			inFakeTime(t, fmt.Sprint(name, explicit), func(t *testing.T, r *redistest.Server) {
				s := siteWith(t, r, middleware.Options{LockWait: time.Second}, "/begun", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
					w.(http.Flusher).Flush()
					must(t, s.Reopen(req.Context()))
					test.change(s, req.Context())
					if explicit {
						err := s.Commit(req.Context())
						if (err != nil) != test.fails || err != nil && !strings.Contains(err.Error(), "no cookie can reach the client") {
							t.Errorf("Commit = %v", err)
						}
					}
					fmt.Fprint(w, "all is well")
				})
				v := newVisitor(t)
				if test.visits {
					v.get(s.URL+"/add").want(t, 200, "1")
				}
				a := v.post(s.URL + "/begun")
				if (a.err != nil) != test.fails || a.sets() {
					t.Errorf("answer %q, %v, header %v", a.body, a.err, a.Header)
				}
				if lines := s.log.Lines("kind=other", "no cookie can reach"); (len(lines) == 1) != test.fails {
					t.Errorf("log: %q", lines)
				}
				v.get(s.URL+"/len").want(t, 200, fmt.Sprint(test.keys)) // at once: the lock is free
			})
		}
	}
}

// A request's goroutines reopen and commit its session in turn, while others read it, and the response begins in
// between. All changes are saved, and other requests lose nothing either.
func TestGoroutinesReopenTheSessionAtOnce(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t) // in a bubble, time stands still while a goroutine waits for a mutex
	mux := app()
	handle(mux, "/crowd", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
		s.Set("begun", true)
		must(t, s.Commit(req.Context()))
		var crowd sync.WaitGroup
		var turn sync.Mutex
		for i := range 8 {
			crowd.Go(func() {
				turn.Lock()
				defer turn.Unlock()
				must(t, s.Reopen(req.Context()))
				s.Set(fmt.Sprint("own", i), i)
				must(t, s.Commit(req.Context()))
			})
			crowd.Go(func() {
				if n := s.Len(); n < 2 || s.IsNew() || s.ID() == "" {
					t.Errorf("a goroutine sees %d keys", n)
				}
			})
		}
		turn.Lock()
		w.(http.Flusher).Flush()
		turn.Unlock()
		crowd.Wait()
	})
	sites := []*site{newSite(t, r.Pool(t, 4), middleware.Options{}, mux), newSite(t, r.Pool(t, 4), middleware.Options{}, mux)}
	v := newVisitor(t).everywhere()
	v.get(sites[0].URL+"/add").want(t, 200, "1")
	var others sync.WaitGroup
	for i := range 16 {
		others.Go(func() { v.get(sites[i%2].URL+"/set/"+fmt.Sprint("other", i)).want(t, 200, "") })
	}
	v.get(sites[0].URL+"/crowd").want(t, 200, "")
	others.Wait()
	v.get(sites[1].URL+"/len").want(t, 200, "26")
}

// P4: A logout also counts for a request that has committed its session before. Reopen opens the request's own
// session or fails.
func TestReopenOfASessionThatIsOver(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		for name, over := range map[string]func(s *site, tab *visitor, id string){
			"logout": func(s *site, tab *visitor, _ string) { tab.get(s.URL+"/logout").want(t, 200, "") },
			"login":  func(s *site, tab *visitor, _ string) { tab.get(s.URL+"/login").want(t, 200, "") },
			"time":   func(_ *site, _ *visitor, id string) { r.Do(t, "DEL", recordOf(id)) },
			"itself": func(*site, *visitor, string) {},
		} {
			var s *site
			var tab *visitor
			s, v := begunWith(t, r, middleware.Options{}, "/slow", func(own *session.Session, w http.ResponseWriter, req *http.Request) {
				if name == "itself" {
					own.Destroy()
				}
				must(t, own.Commit(req.Context()))
				over(s, tab, own.ID())
				for range 2 { // the second try fails, too
					err := own.Reopen(req.Context())
					if !errors.Is(err, store.ErrGone) || errors.Is(err, store.ErrNotFound) != (name == "time") || middleware.Status(err) != 409 {
						t.Errorf("%s: Reopen = %v", name, err)
					}
				}
				fmt.Fprint(w, "sorry")
			})
			tab = with(t, v.cookies(s)...)
			a := v.get(s.URL + "/slow")
			a.want(t, 200, "sorry")
			if a.sets() != (name == "itself") || len(s.log.Lines("kind=gone", "Reopen")) != 2 {
				t.Errorf("%s: header %v, log:\n%s", name, a.Header, s.log)
			}
		}
	})
}

// A commit that fails is one line in the log: also if the handler reopens the session, as it may in a stream, and however
// often it tries to, as it may not before the response has begun.
func TestACommitThatFailsIsOneLine(t *testing.T) {
	t.Parallel()
	for name, streams := range map[string]bool{"in a stream": true, "before the response": false} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			mux := app()
			handle(mux, "/fails", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
				if streams {
					must(t, http.NewResponseController(w).Flush())
					must(t, s.Reopen(req.Context()))
				}
				s.Set("f", func() {})
				if s.Commit(req.Context()) == nil {
					t.Error("a func is stored")
				}
				for range 3 {
					if err := s.Reopen(req.Context()); err == nil != streams {
						t.Errorf("Reopen = %v", err)
					} else if err == nil {
						s.Set("n", 5)
						must(t, s.Commit(req.Context()))
					}
				}
			})
			s, v := begun(t, r, middleware.Options{}, mux)
			if a := v.get(s.URL + "/fails"); streams != (a.StatusCode == 200) {
				t.Errorf("answered with %d", a.StatusCode)
			}
			if lines := s.log.Lines("session failed"); len(lines) != 1 {
				t.Errorf("%d lines:\n%s", len(lines), s.log)
			}
			want := map[bool]string{true: "5", false: "1"}[streams]
			v.get(s.URL+"/get").want(t, 200, want)
		})
	}
}

// A Reopen that fails for a reason of its own is a line, also if the session was changed meanwhile.
func TestAReopenThatFailsIsALineBesideALateChange(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		flushed, held := make(chan struct{}), make(chan struct{})
		handle(mux, "/late", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
			must(t, http.NewResponseController(w).Flush())
			close(flushed)
			<-held
			time.AfterFunc(time.Second, func() { s.Set("n", 5) })
			if err := s.Reopen(req.Context()); !errors.Is(err, store.ErrTimeout) {
				t.Errorf("Reopen = %v", err)
			}
		})
		s, v := begun(t, r, middleware.Options{LockWait: 5 * time.Second}, mux)
		late := v.start(s.URL + "/late")
		<-flushed
		free := v.hold(s.URL + "/pause")
		close(held)
		<-late
		free()
		if n, m := len(s.log.Lines("kind=late")), len(s.log.Lines("kind=timeout", "Reopen")); n != 1 || m != 1 {
			t.Errorf("%d lines of the change, %d of the wait, want one each:\n%s", n, m, s.log)
		}
	})
}

// If Reopen is not possible, it returns a clear error, and nothing is lost.
func TestReopenWhereItCannotBe(t *testing.T) {
	t.Parallel()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		do     func(s *session.Session, w http.ResponseWriter, ctx context.Context) error
		want   error // nil: any
		status int
		n      string // what is stored
	}{
		"before Commit": {func(s *session.Session, _ http.ResponseWriter, ctx context.Context) error {
			s.Set("n", 5)
			return s.Reopen(ctx)
		},
			session.ErrOpen, 200, "5"},
		"after its context": {func(s *session.Session, _ http.ResponseWriter, ctx context.Context) error {
			s.Set("n", 5)
			_ = s.Commit(ctx)
			return s.Reopen(canceled)
		}, context.Canceled, 200, "5"},
		"after a commit that failed": {func(s *session.Session, _ http.ResponseWriter, ctx context.Context) error {
			s.Set("n", make(chan int))
			_ = s.Commit(ctx)
			err := s.Reopen(ctx)
			s.Set("n", 5)
			return err
		}, nil, 500, "1"},
		"after a Flush that failed": {func(s *session.Session, w http.ResponseWriter, ctx context.Context) error {
			s.Set("n", make(chan int))
			w.(http.Flusher).Flush()
			err := s.Reopen(ctx)
			s.Set("n", 5)
			_ = s.Commit(ctx)
			return err
		}, nil, 500, "1"},
		"after a late change": {func(s *session.Session, _ http.ResponseWriter, ctx context.Context) error {
			s.Set("n", 5)
			_ = s.Commit(ctx)
			s.Set("n", 6)
			err := s.Reopen(ctx)
			s.Set("n", 7)
			return err
		}, session.ErrClosed, 500, "5"},
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			s, v := begunWith(t, r, middleware.Options{}, "/reopen", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
				err := test.do(s, w, req.Context())
				if err == nil || test.want != nil && !errors.Is(err, test.want) {
					t.Errorf("Reopen = %v, want %v", err, test.want)
				}
			})
			v.get(s.URL+"/reopen").want(t, test.status, "*")
			v.get(s.URL+"/get").want(t, 200, test.n)
		})
	}
}

// A goroutine that outlives its handler cannot reopen the session, nor go on waiting for it.
func TestReopenEndsWithTheHandler(t *testing.T) {
	type key struct{}
	for name, derived := range map[string]func(context.Context) context.Context{
		"the handler's context": func(ctx context.Context) context.Context { return ctx },
		"a value":               func(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, 1) },
		"no end":                context.WithoutCancel,
	} {
		t.Run(name, func(t *testing.T) { reopenEndsWithTheHandler(t, derived) })
	}
}

func reopenEndsWithTheHandler(t *testing.T, derived func(context.Context) context.Context) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		errs := make(chan error, 2)
		holding := make(chan *records.Hold, 1)
		st := store.New(r.Pool(t, 4), store.Options{})
		handle(mux, "/leave", func(s *session.Session, _ http.ResponseWriter, req *http.Request) {
			must(t, s.Commit(req.Context()))
			h, _, err := records.Of(st).Take(t.Context(), s.ID(), records.Terms{})
			must(t, err)
			holding <- h
			go func() {
				errs <- s.Reopen(derived(req.Context())) // waits for h
				errs <- s.Reopen(derived(req.Context()))
			}()
			synctest.Wait() // the first one waits
		})
		s := newSiteOn(t, st, middleware.Options{LockWait: time.Minute}, mux)
		v := s.visitor(t)
		v.get(s.URL+"/leave").want(t, 200, "")
		for range 2 {
			if err := <-errs; err == nil || !strings.Contains(err.Error(), "after the handler has returned") {
				t.Errorf("Reopen = %v", err)
			}
		}
		(<-holding).Release(t.Context())
		v.get(s.URL+"/add").want(t, 200, "2")
	})
}

// P2: If a second commit fails, its error replaces the response, and says that the first commit succeeded. The cookie
// of the first commit stays, since nothing else leads to the saved session.
func TestASecondCommitThatFails(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s := siteWith(t, r, middleware.Options{}, "/twice", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
			s.Set("n", 5)
			must(t, s.Commit(req.Context()))
			must(t, s.Reopen(req.Context()))
			s.Set("n", 6)
			loseLock(t, r, req)
			fmt.Fprint(w, "all is well")
		})
		v := newVisitor(t)
		for cookies := range 2 { // with a session, and without
			if cookies == 0 {
				v.get(s.URL+"/add").want(t, 200, "1")
			} else {
				v = newVisitor(t)
			}
			a := v.get(s.URL + "/twice")
			a.want(t, 503, notAllSaved)
			if len(a.Header["Set-Cookie"]) != cookies || a.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("header %v", a.Header)
			}
			v.get(s.URL+"/get").want(t, 200, "5")
		}
	})
}

// P2: The client learns that not all was saved, however the first commit has saved its part: a client that takes the error
// for "nothing was saved" does that part again.
func TestASecondCommitThatFailsSaysThatTheFirstHasSaved(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]func(*session.Session){
		"Set":      func(s *session.Session) { s.Set("n", 5) },
		"Remember": func(s *session.Session) { s.Remember(month) },
		"Renew":    func(s *session.Session) { s.Renew() },
	} {
		for _, mode := range []middleware.Mode{middleware.Exclusive, middleware.Optimistic} {
			inFakeTime(t, fmt.Sprint(name, " in mode ", mode), func(t *testing.T, r *redistest.Server) {
				o := middleware.Options{Mode: byPath(map[string]middleware.Mode{"/twice": mode})}
				s, v := begunWith(t, r, o, "/twice", func(s *session.Session, _ http.ResponseWriter, req *http.Request) {
					first(s)
					must(t, s.Commit(req.Context()))
					must(t, s.Reopen(req.Context()))
					s.Set("n", 6)
					loseLock(t, r, req)
				})
				v.get(s.URL+"/twice").want(t, 503, notAllSaved)
			})
		}
	}
}

// A recoverer around the sessions may have kept the handler's writer. It can use the writer also after the last commit has
// failed, and the response was cut off.
func TestAWriterThatOutlivesACutOff(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		var kept http.ResponseWriter
		answered := false
		mux := app()
		handle(mux, "/cut", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
			kept = w
			w.(http.Flusher).Flush()
			must(t, s.Reopen(req.Context()))
			s.Set("large", strings.Repeat("x", 8<<20))
		})
		s := around(t, r, middleware.Options{}, func(sessions func(http.Handler) http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				defer func() {
					if v := recover(); v != nil {
						http.Error(kept, "sorry", http.StatusInternalServerError)
						answered = true
					}
				}()
				sessions(mux).ServeHTTP(w, req)
			})
		})
		newVisitor(t).post(s.URL + "/cut")
		if !answered {
			t.Error("the writer cannot be used")
		}
	})
}

// A Reopen may still wait in another goroutine when the handler returns: what the handler's request is given then is not
// what Options.Label reads.
func TestReopenMeetsTheEndOfTheHandler(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		var left sync.WaitGroup
		handle(mux, "/page", func(ss *session.Session, _ http.ResponseWriter, r *http.Request) {
			add(ss)
			must(t, ss.Commit(r.Context()))
			left.Go(func() { _ = ss.Reopen(r.Context()) })
			for range 50 {
				runtime.Gosched()
			}
		})
		s, v := begun(t, r, middleware.Options{Label: func(r *http.Request) string { return r.Method + " " + r.Pattern }}, mux)
		for range 20 {
			v.post(s.URL + "/page")
			left.Wait()
		}
	})
}
