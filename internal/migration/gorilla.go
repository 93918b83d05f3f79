package migration

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
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

// FromGorilla gives visitors who come with the cookie name of a gorilla store, and without a
// session of Latchkey, one with the same values. It goes around Sessions.Handler.
func FromGorilla(ours *middleware.Sessions, old sessions.Store, name string, adopt Adopt, next http.Handler) http.Handler {
	return moving(ours, name, next, func(w http.ResponseWriter, r *http.Request, s *session.Session) error {
		was, err := old.New(r, name)
		forged, ok := errors.AsType[securecookie.Error](err)
		_, inFile := old.(*sessions.FilesystemStore)
		isNone := inFile && errors.Is(err, fs.ErrNotExist) || ok && forged.IsDecode() && !hasUnknownType(err)
		if err != nil && !isNone {
			return err // the store is unavailable
		}
		mark, _ := was.Values[movedTo].(string)
		before, at, _ := strings.Cut(mark, " ")
		if sec, _ := strconv.ParseInt(at, 10, 64); mark != "" && time.Now().Unix()-sec > 3600 {
			clear(was.Values) // its hour is over, though the store has kept it
		}
		for key, value := range was.Values {
			if key, ok := key.(string); ok && key != movedTo {
				s.Set(key, value)
			}
		}
		if err := keep(r.Context(), ours, s, before, adopt); err != nil {
			return err
		}
		drop := *was.Options
		drop.MaxAge = -1
		http.SetCookie(w, sessions.NewCookie(name, "", &drop))
		if _, inCookie := old.(*sessions.CookieStore); was.IsNew || before != "" || inCookie {
			return nil // there is nothing that could be ended
		}
		// The old session ends in an hour, not at once: this response may be lost, and
		// requests may be under way with the old cookie.
		was.Values[movedTo] = fmt.Sprint(s.ID(), " ", time.Now().Unix())
		if age := was.Options.MaxAge; age <= 0 || age > 3600 {
			was.Options.MaxAge = 3600
		}
		return old.Save(r, unsent{}, was)
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
