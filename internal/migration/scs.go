package migration

import (
	"net/http"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/alexedwards/scs/v2"
)

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
		if len(keys) > 0 && !old.Exists(ctx, "until") {
			// The old session ends in a minute, so that requests that are under way with its cookie
			// find it, and a copy of the cookie is useless after the logout.
			end, soon := old.Deadline(ctx), time.Now().Add(time.Minute)
			old.Put(ctx, "until", end.UnixMilli())
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
		old.WriteSessionCookie(ctx, w, "", time.Time{}) // the browser deletes it
		return nil
	})
}

// LoggedIn returns who is logged in, or "". A session that was moved ends when it would have
// ended in scs: without this it has another Lifetime.
func LoggedIn(s *session.Session) string {
	if user := s.User(); user != "" { // has logged in since the move
		return user
	}
	if until, ok := session.Get[int64](s, "until"); ok && time.Now().UnixMilli() >= until {
		return ""
	}
	user, _ := session.Get[string](s, "user")
	return user
}
