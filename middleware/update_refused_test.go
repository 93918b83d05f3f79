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

func TestUpdateRefuses(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	st := store.New(r.Pool(t, 4), store.Options{})
	o := newOffice(t, st, middleware.Options{LockWait: 50 * time.Millisecond}, app())
	_, other := o.begins(t)
	h, err := st.Take(t.Context(), other, store.Terms{})
	must(t, err)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		f    func(*session.Session) error
		id   string // "": of a session
		want string
		is   error
	}{
		"Renew":            {t.Context(), func(s *session.Session) error { add(s); s.Renew(); return nil }, "", "cannot give the session a new id", nil},
		"Commit":           {t.Context(), func(s *session.Session) error { add(s); return s.Commit(t.Context()) }, "", "saved when the function returns", nil},
		"Reopen":           {t.Context(), func(s *session.Session) error { add(s); return s.Reopen(t.Context()) }, "", "saved when the function returns", nil},
		"a busy session":   {t.Context(), adding, other, "", store.ErrTimeout},
		"an ended ctx":     {canceled, adding, other, "", context.Canceled},
		"an unknown id":    {t.Context(), adding, "AAAAAAAAAAAAAAAAAAAAAA", "", store.ErrNotFound},
		"Remember":         {t.Context(), func(s *session.Session) error { add(s); s.Remember(time.Hour); return nil }, "", "cannot give the session a new id, nor an end", nil},
		"nested":           {t.Context(), nil, "", "", store.ErrTimeout},
		"nested elsewhere": {t.Context(), nil, "", "", store.ErrTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			v, id := o.begins(t)
			inner := o.Sessions
			if name == "nested elsewhere" {
				inner = newOffice(t, st, middleware.Options{LockWait: 50 * time.Millisecond}, nil).Sessions
			}
			f, began := test.f, time.Now()
			if f == nil {
				f = func(s *session.Session) error { add(s); return inner.Update(t.Context(), id, adding) }
			}
			if test.id == "" {
				test.id = id
			}
			err := o.Update(test.ctx, test.id, f)
			if err == nil || !strings.Contains(err.Error(), test.want) || test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("Update = %v, want %q, %v", err, test.want, test.is)
			}
			if test.is == nil && time.Since(began) > 20*time.Second {
				t.Error("it was not said at once")
			}
			v.get(o.URL+"/add").want(t, 200, "2")
		})
	}
	h.Release(t.Context())
}

func TestUpdateOfAnEndedSession(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		o := newOffice(t, store.New(r.Pool(t, 4), store.Options{}), middleware.Options{}, app())
		v, id := o.begins(t)
		v.get(o.URL+"/logout").want(t, 200, "")
		ran := false
		err := o.Update(t.Context(), id, func(*session.Session) error { ran = true; return nil })
		if !errors.Is(err, store.ErrGone) || ran {
			t.Errorf("Update = %v, and its function ran: %v", err, ran)
		}
		if _, err := o.Peek(t.Context(), id); !errors.Is(err, store.ErrGone) {
			t.Errorf("Peek = %v", err)
		}
	})
}

func TestUpdateAndPeekOfWhatIsNoID(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		proxy := redistest.NewProxy(t, r)
		o := newOffice(t, store.New(proxy.Pool(t, 4), store.Options{}), middleware.Options{}, app())
		for _, id := range []string{"", "a", strings.Repeat("A", 21), strings.Repeat("A", 23), strings.Repeat("A", 1<<20),
			strings.Repeat("A", 21) + "B", strings.Repeat("A", 21) + "=", strings.Repeat("A", 20) + "}x", strings.Repeat("A", 20) + "\n\n", "\nAAAAAAAAAAAAAAAAAAAAAA"} {
			err := o.Update(t.Context(), id, adding)
			_, peeked := o.Peek(t.Context(), id)
			for _, err := range []error{err, peeked} {
				if err == nil || !strings.Contains(err.Error(), "22 characters of base64url") {
					t.Errorf("%.40q: %v", id, err)
				}
			}
		}
		if commands := proxy.Commands(); len(commands) > 0 {
			t.Errorf("commands: %q", commands)
		}
	})
}

func TestUpdateInAHandler(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		st := store.New(r.Pool(t, 4), store.Options{})
		mux := app()
		var o, other *office
		handle(mux, "/update", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
			add(s)
			for _, sessions := range []*middleware.Sessions{o.Sessions, other.Sessions} {
				if err := sessions.Update(req.Context(), s.ID(), adding); err == nil || !strings.Contains(err.Error(), "would wait for itself") {
					t.Errorf("Update = %v", err)
				}
			}
			must(t, s.Commit(req.Context()))
			must(t, o.Update(req.Context(), s.ID(), func(own *session.Session) error {
				return adding(own)
			}))
			must(t, s.Reopen(req.Context()))
			_, job := o.begins(t)
			must(t, o.Update(req.Context(), job, func(*session.Session) error {
				if err := o.Update(req.Context(), s.ID(), adding); err == nil || !strings.Contains(err.Error(), "would wait for itself") {
					t.Errorf("Update after Reopen, in the Update of another session = %v", err)
				}
				return nil
			}))
			fmt.Fprint(w, add(s))
		})
		other = newOffice(t, st, middleware.Options{LockWait: time.Minute}, mux)
		o = newOffice(t, st, middleware.Options{LockWait: time.Minute}, mux)
		v, _ := o.begins(t)
		v.get(o.URL+"/update").want(t, 200, "4")
		v.get(o.URL+"/get").want(t, 200, "4")
	})
}
