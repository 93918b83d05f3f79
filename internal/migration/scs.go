package migration

import (
	"cmp"
	"net/http"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/alexedwards/scs/v2"
)

// OptionsOfSCS makes sessions last as long as in scs, and the browser keep their cookies as long.
func OptionsOfSCS(old *scs.SessionManager) middleware.Options {
	o := middleware.Options{
		TTL:      min(cmp.Or(old.IdleTimeout, old.Lifetime), old.Lifetime), // scs has no idle timeout unless set
		Lifetime: old.Lifetime,
		Cookie:   http.Cookie{Name: "__Host-session", Secure: true},
	}
	if old.Cookie.Persist {
		o.Cookie.MaxAge = int(old.Lifetime.Seconds())
	}
	return o
}

// endsAt is the key of a moved session's end in scs, in Unix milliseconds.
const endsAt = "latchkey/migration: ends at"

// FromSCS gives visitors who come with a cookie of scs, and without a session of Latchkey, one
// with the same values. It goes around Sessions.Handler.
func FromSCS(sessions *middleware.Sessions, old *scs.SessionManager, next http.Handler) http.Handler {
	name := old.Cookie.Name
	return moving(sessions, name, next, func(w http.ResponseWriter, r *http.Request, s *session.Session) error {
		cookie, err := r.Cookie(name)
		if err != nil {
			return err
		}
		ctx, err := old.Load(r.Context(), cookie.Value)
		if err != nil {
			return err
		}
		keys := old.Keys(ctx)
		if len(keys) > 0 && !old.Exists(ctx, endsAt) {
			// The old session ends in a minute, so that requests that are under way with its cookie
			// find it, and a copy of the cookie is useless after the logout.
			end, soon := old.Deadline(ctx), time.Now().Add(time.Minute)
			old.Put(ctx, endsAt, end.UnixMilli())
			if soon.Before(end) {
				old.SetDeadline(ctx, soon)
			}
			if _, _, err := old.Commit(ctx); err != nil {
				return err
			}
		}
		for _, key := range old.Keys(ctx) {
			s.Set(key, old.Get(ctx, key))
		}
		if left := time.Until(time.UnixMilli(old.GetInt64(ctx, endsAt))); old.GetBool(ctx, "__rememberMe") && left > 0 {
			s.Remember(left) // RememberMe of scs
		}
		old.WriteSessionCookie(ctx, w, "", time.Time{}) // the browser deletes it
		return nil
	})
}

// LoggedIn returns who is logged in: the value at the key where the program has always kept it. A session
// that was moved ends when it would have ended in scs, unless there was a Login since the move: without
// LoggedIn, Lifetime would count from the move.
func LoggedIn[T any](s *session.Session, key string) (user T, ok bool) {
	end, moved := session.Get[int64](s, endsAt)
	if moved && s.User() == "" && time.Now().UnixMilli() >= end {
		return user, false
	}
	return session.Get[T](s, key)
}
