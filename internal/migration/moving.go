// Package migration shows how a program moves to Latchkey from scs, or from gorilla/sessions, while its
// visitors stay logged in. The functions are meant to be copied.
package migration

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// Adopt is what the program does with the values of an old session before they are stored. It may Clear them, so that
// the visitor has to log in again, or call Login. If it returns an error, the request gets a 503, and the old cookie stays.
type Adopt func(ctx context.Context, s *session.Session) error

// movedTo is the key of an old session for the ID of the session to which it was moved. With gorilla, the time follows.
const movedTo = "latchkey/migration: moved to"

// moving returns next with a step before it: a request with an old cookie, but without a session of
// Latchkey, gets a session that move has filled. When next sees the request, the session is stored and
// the request has its cookie, so next may use the session in any mode.
func moving(sessions *middleware.Sessions, oldCookie string, next http.Handler,
	move func(w http.ResponseWriter, r *http.Request, s *session.Session) error) http.Handler {
	step := sessions.Optimistic(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		if !s.IsNew() {
			return
		}
		if err := move(w, r, s); err != nil {
			slog.ErrorContext(r.Context(), "an old session cannot be moved", "cookie", oldCookie, "error", err)
			s.Discard()
			w.Header().Set("Retry-After", "1") // seconds
			http.Error(w, "Please try again.", http.StatusServiceUnavailable)
		}
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := r.Cookie(oldCookie); err != nil {
			next.ServeHTTP(w, r)
			return
		}
		first := r.Clone(r.Context())
		first.Method = http.MethodGet                    // which Optimistic requires
		first.Body, first.ContentLength = http.NoBody, 0 // next gets the body
		a := answer{header: http.Header{}, status: http.StatusOK}
		step.ServeHTTP(&a, first)
		if a.status != http.StatusOK {
			a.header.Del("Set-Cookie") // the browser comes again with the old cookie
			a.send(w)
			return
		}
		came := r
		r = r.Clone(r.Context())
		defer func() { // net/http removes the files of a form, and what logs around the step wants the route
			came.MultipartForm, came.Pattern = cmp.Or(came.MultipartForm, r.MultipartForm), cmp.Or(came.Pattern, r.Pattern)
		}()
		for _, line := range a.header["Set-Cookie"] {
			w.Header().Add("Set-Cookie", line)
			if c, err := http.ParseSetCookie(line); err == nil && c.MaxAge >= 0 {
				r.Header.Set("Cookie", c.Name+"="+c.Value+"; "+r.Header.Get("Cookie"))
			}
		}
		next.ServeHTTP(uncached{w}, r)
		uncached{w}.forbid() // if nothing was written
	})
}

// keep stores s, which has the values of an old session, unless adopt clears it. A nil adopt changes nothing.
//
// An old session may come again, from a browser that has lost the first response. Then before is the ID of the
// session to which it was moved. If that session has ended or got another ID, by a logout or a login, the old
// cookie is worthless, and nothing is stored.
func keep(ctx context.Context, sessions *middleware.Sessions, s *session.Session, before string, adopt Adopt) error {
	var err error
	if before != "" {
		_, err = sessions.Peek(ctx, before)
	}
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrGone) || errors.Is(err, store.ErrMoved) {
		s.Clear()
		err = nil
	}
	if err == nil && adopt != nil && s.Len() > 0 {
		err = adopt(ctx, s)
	}
	if err != nil {
		return err
	}
	return s.Commit(ctx)
}

// An answer keeps a response until it is clear whether to send it.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

func (a *answer) send(w http.ResponseWriter) {
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body.Bytes()) // the client may have gone
}

// uncached keeps a response out of every cache, whatever the handler says: it may set the cookie.
type uncached struct{ http.ResponseWriter }

func (u uncached) Unwrap() http.ResponseWriter { return u.ResponseWriter }

func (u uncached) WriteHeader(status int) {
	u.forbid()
	u.ResponseWriter.WriteHeader(status)
}

func (u uncached) Write(b []byte) (int, error) {
	u.forbid()
	return u.ResponseWriter.Write(b)
}

func (u uncached) FlushError() error {
	u.forbid()
	return http.NewResponseController(u.ResponseWriter).Flush()
}

func (u uncached) forbid() {
	for _, name := range []string{"CDN-Cache-Control", "Surrogate-Control", "X-Accel-Expires"} {
		u.Header().Del(name)
	}
	u.Header().Set("Cache-Control", "no-store")
}
