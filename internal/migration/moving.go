// Package migration shows how a program goes over to Latchkey while its visitors stay logged in:
// from scs, and from gorilla/sessions. The functions are there to be copied.
package migration

import (
	"bytes"
	"net/http"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// moving returns next with a step before it: a request that comes with an old cookie, and without
// a session of Latchkey, gets one that move has filled. By the time next sees the request, the
// session is stored and its cookie is there, so that next may use it in any mode.
func moving(sessions *middleware.Sessions, oldCookie string, next http.Handler,
	move func(w http.ResponseWriter, r *http.Request, s *session.Session) error) http.Handler {
	step := sessions.Exclusive(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		if !s.IsNew() {
			return
		}
		if err := move(w, r, s); err != nil {
			s.Clear()
			http.Error(w, "Please try again.", http.StatusServiceUnavailable)
		}
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := r.Cookie(oldCookie); err != nil {
			next.ServeHTTP(w, r)
			return
		}
		first := r.Clone(r.Context())
		first.Body, first.ContentLength = http.NoBody, 0 // the body is next's
		a := answer{header: http.Header{}, status: http.StatusOK}
		step.ServeHTTP(&a, first)
		if a.status != http.StatusOK {
			a.send(w)
			return
		}
		r = r.Clone(r.Context())
		for _, line := range a.header["Set-Cookie"] {
			w.Header().Add("Set-Cookie", line)
			if c, err := http.ParseSetCookie(line); err == nil && c.MaxAge >= 0 {
				r.Header.Set("Cookie", c.Name+"="+c.Value+"; "+r.Header.Get("Cookie"))
			}
		}
		next.ServeHTTP(uncached{w}, r)
		uncached{w}.forbid() // where nothing was written
	})
}

// An answer is kept until it is known what becomes of it.
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
	_, _ = w.Write(a.body.Bytes()) // the client may be gone
}

// uncached keeps an answer out of every cache, whatever the handler says: it may set the cookie.
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
