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
func FromSCS(sessions *middleware.Sessions, old *scs.SessionManager, adopt Adopt, next http.Handler) http.Handler {
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
		before := old.PopString(ctx, movedTo)
		if old.Deadline(ctx).UnixMilli() > old.GetInt64(ctx, endsAt) { // was never moved or, after a rollback, there was a new login
			before = ""
			old.Remove(ctx, endsAt)
		}
		keys := old.Keys(ctx)
		if len(keys) > 0 && !old.Exists(ctx, endsAt) {
			old.Put(ctx, endsAt, old.Deadline(ctx).UnixMilli())
		}
		for _, key := range old.Keys(ctx) {
			s.Set(key, old.Get(ctx, key))
		}
		left := time.Until(time.UnixMilli(old.GetInt64(ctx, endsAt)))
		if left > 0 && (old.GetBool(ctx, "__rememberMe") || old.Cookie.Persist && left > old.Lifetime) {
			s.Remember(min(left, 400*24*time.Hour)) // RememberMe or SetDeadline; browsers keep cookies for 400 days
		}
		if err := keep(r.Context(), sessions, s, before, adopt); err != nil {
			return err
		}
		old.WriteSessionCookie(ctx, w, "", time.Time{}) // the browser deletes it
		if len(keys) == 0 || before != "" {
			return nil
		}
		// The old session ends in an hour, not at once: this response may be lost, and
		// requests may be under way with the old cookie.
		old.Put(ctx, movedTo, s.ID())
		if soon := time.Now().Add(time.Hour); soon.Before(old.Deadline(ctx)) {
			old.SetDeadline(ctx, soon)
		}
		_, _, err = old.Commit(ctx)
		return err
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
