package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// add is app's /add, for handlers that do more.
func add(s *session.Session) int {
	n, _ := session.Get[int](s, "n")
	s.Set("n", n+1)
	return n + 1
}

// must is for what works on a good day.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// P1: a handler gives its session back for slow work, and then goes on with what is stored by
// then, which another process has written.
func TestReopenGoesOnWithWhatIsStoredByThen(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Server) {
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
		v := newVisitor(t)
		v.get(here.URL+"/add").want(t, 200, "1")
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

// A new visitor's session is begun by the first commit and reopened by its id of then. The answer
// has one cookie, which opens it.
func TestTheAnswerHasOneCookieHoweverOftenItIsReopened(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ first, second func(*session.Session) }{
		"begun first":           {func(s *session.Session) { s.Set("a", 1) }, func(s *session.Session) { s.Set("b", 2) }},
		"begun first, read":     {func(s *session.Session) { s.Set("a", 1); s.Set("b", 2) }, func(s *session.Session) { s.Len() }},
		"begun second":          {func(s *session.Session) { s.Len() }, func(s *session.Session) { s.Set("a", 1); s.Set("b", 2) }},
		"asked for its id":      {func(s *session.Session) { s.ID() }, func(s *session.Session) { s.Set("a", 1); s.Set("b", 2) }},
		"begun, then renewed":   {func(s *session.Session) { s.Set("a", 1) }, func(s *session.Session) { s.Renew(); s.Set("b", 2) }},
		"renewed, then changed": {func(s *session.Session) { s.Renew(); s.Set("a", 1) }, func(s *session.Session) { s.Set("b", 2) }},
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			mux := app()
			handle(mux, "/twice", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
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
			s := newSite(t, r.Pool(t, 4), middleware.Options{}, mux)
			v := newVisitor(t)
			a := v.get(s.URL + "/twice")
			if a.StatusCode != 200 || len(a.Header["Set-Cookie"]) != 1 || a.Header.Get("Cache-Control") != "no-store" {
				t.Fatalf("%d %q, header %v", a.StatusCode, a.body, a.Header)
			}
			v.get(s.URL+"/len").want(t, 200, "2")
			v.get(s.URL+"/id").want(t, 200, a.body)
		})
	}
}

// P9: without a session, Commit and Reopen cost nothing.
func TestReopenWithoutASessionIsFree(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		proxy := redistest.NewProxy(t, r)
		s := newSite(t, proxy.Pool(t, 4), middleware.Options{}, http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
			s := session.FromContext(req.Context())
			for range 3 {
				must(t, s.Commit(req.Context()))
				must(t, s.Reopen(req.Context()))
			}
		}))
		a := newVisitor(t).get(s.URL)
		a.want(t, 200, "")
		if a.sets() || len(proxy.Commands()) > 0 {
			t.Errorf("cookie %q, commands %q", a.Header.Get("Set-Cookie"), proxy.Commands())
		}
	})
}

// In mode Lazy a session that was started can be reopened. In mode ReadOnly it is read again, also
// while another request holds it, and stays as it is.
func TestReopenInOtherModes(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		mux.HandleFunc("/lazy", func(w http.ResponseWriter, req *http.Request) {
			s, err := session.Start(req.Context())
			must(t, err)
			add(s)
			must(t, s.Commit(req.Context()))
			must(t, s.Reopen(req.Context()))
			fmt.Fprint(w, add(s))
		})
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
		busy, free := pausing(mux)
		s := newSite(t, r.Pool(t, 4), middleware.Options{Mode: byPath(map[string]middleware.Mode{
			"/lazy": middleware.Lazy, "/watch": middleware.ReadOnly})}, mux)
		v := newVisitor(t)
		v.get(s.URL+"/lazy").want(t, 200, "2")
		watch, pause := make(chan answer, 1), make(chan answer, 1)
		go func() { watch <- v.get(s.URL + "/watch") }()
		for n := 3; n < 6; n++ {
			v.get(s.URL+"/add").want(t, 200, fmt.Sprint(n))
			more <- struct{}{}
			if got := <-read; got != n {
				t.Errorf("read %d, want %d", got, n)
			}
		}
		go func() { pause <- v.get(s.URL + "/pause") }()
		<-busy
		more <- struct{}{}
		if got := <-read; got != 5 {
			t.Errorf("read %d beside a holder, want 5", got)
		}
		close(free)
		(<-pause).want(t, 200, "stored")
		close(more)
		(<-watch).want(t, 500, "*") // ErrReadOnly
		v.get(s.URL+"/get").want(t, 200, "500")
	})
}

// Each Reopen may wait for LockWait, however long the ones before it have waited.
func TestEachReopenMayWait(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		st := store.New(r.Pool(t, 4), store.Options{})
		mux := app()
		const wait = 300 * time.Millisecond
		handle(mux, "/again", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
			must(t, s.Commit(req.Context()))
			h, err := st.Take(t.Context(), s.ID(), store.Terms{})
			must(t, err)
			if err := s.Reopen(req.Context()); !errors.Is(err, store.ErrTimeout) || middleware.Status(err) != 503 {
				t.Errorf("Reopen = %v", err)
			}
			time.AfterFunc(wait/3, func() { h.Release(context.Background()) })
			must(t, s.Reopen(req.Context()))
			fmt.Fprint(w, add(s))
		})
		s := newSiteOn(t, st, middleware.Options{LockWait: wait}, mux)
		v := newVisitor(t)
		v.get(s.URL+"/add").want(t, 200, "1")
		v.get(s.URL+"/again").want(t, 200, "2")
	})
}

// P2: what a client has sent is saved although it has gone away meanwhile, if the handler wants so.
func TestReopenForAClientThatHasGone(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		working, done := make(chan struct{}), make(chan struct{})
		mux.HandleFunc("/upload", func(_ http.ResponseWriter, req *http.Request) {
			defer close(done)
			s := session.FromContext(req.Context())
			must(t, s.Commit(req.Context()))
			close(working)
			<-req.Context().Done()
			if err := s.Reopen(req.Context()); !errors.Is(err, context.Canceled) {
				t.Errorf("Reopen = %v", err)
			}
			ctx := context.WithoutCancel(req.Context())
			must(t, s.Reopen(ctx))
			add(s)
			must(t, s.Commit(ctx))
		})
		s, v := begun(t, r, middleware.Options{}, mux)
		ctx, leave := context.WithCancel(t.Context())
		go func() { <-working; leave() }()
		if a := v.send(ctx, http.MethodGet, s.URL+"/upload", nil); !errors.Is(a.err, context.Canceled) {
			t.Errorf("%v", a.err)
		}
		<-done
		v.get(s.URL+"/get").want(t, 200, "2")
	})
}
