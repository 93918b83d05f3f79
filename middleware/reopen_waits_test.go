package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

func TestReopenInOtherModes(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
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

func TestEachReopenMayWait(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
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

func TestReopenForAClientThatHasGone(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
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
