package migration

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/gorilla/securecookie"
	"github.com/gorilla/sessions"
)

// OptionsOfGorilla makes sessions last as long as with the Options of a gorilla store, and the browser keep their
// cookies as long.
func OptionsOfGorilla(old *sessions.Options) middleware.Options {
	o := middleware.Options{
		Lifetime: 400 * 24 * time.Hour, // gorilla has no absolute timeout; no browser keeps a cookie for longer
		Cookie:   http.Cookie{Name: "__Host-session", Secure: true},
	}
	if old.MaxAge > 0 { // otherwise the cookie ends with the browser, and TTL is 30 minutes
		o.TTL = min(time.Duration(old.MaxAge)*time.Second, o.Lifetime)
		o.Cookie.MaxAge = int(o.Lifetime.Seconds())
	}
	return o
}

// movedMark is the key by which an old session says that it was moved.
const movedMark = "latchkey/migration: moved"

// FromGorilla gives visitors who come with the cookie name of a gorilla store, and without a
// session of Latchkey, one with the same values. It goes around Sessions.Handler.
func FromGorilla(ours *middleware.Sessions, old sessions.Store, name string, next http.Handler) http.Handler {
	return moving(ours, name, next, func(w http.ResponseWriter, r *http.Request, s *session.Session) error {
		was, err := old.New(r, name)
		if forged, ok := errors.AsType[securecookie.Error](err); err != nil && !(ok && forged.IsDecode() && !hasUnknownType(err)) {
			return err // otherwise the store is unavailable
		}
		drop := *was.Options
		if _, moved := was.Values[movedMark]; !was.IsNew && !moved {
			// The old session ends in a minute, so that requests that are under way with its cookie
			// find it, and a copy of the cookie is useless after the logout. A CookieStore stores
			// no session that could be ended.
			was.Values[movedMark] = true
			was.Options.MaxAge = 60
			if err := old.Save(r, unsent{}, was); err != nil {
				return err
			}
		}
		for key, value := range was.Values {
			if key, ok := key.(string); ok && key != movedMark {
				s.Set(key, value)
			}
		}
		drop.MaxAge = -1
		http.SetCookie(w, sessions.NewCookie(name, "", &drop))
		return nil
	})
}

// hasUnknownType reports whether a session is genuine, but has a type that is not registered with gob any more. To
// take it for a forgery would log its visitor out.
func hasUnknownType(err error) bool {
	all, ok := errors.AsType[securecookie.MultiError](err) // one for each key
	if !ok {
		all = securecookie.MultiError{err}
	}
	return slices.ContainsFunc(all, func(err error) bool { return strings.Contains(err.Error(), "gob: ") })
}

// unsent takes the cookie that a store sets when it saves.
type unsent struct{}

func (unsent) Header() http.Header         { return http.Header{} }
func (unsent) Write(b []byte) (int, error) { return len(b), nil }
func (unsent) WriteHeader(int)             {}
