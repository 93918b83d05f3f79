package middleware

import "net/http"

// Passive returns next as a route whose requests do not count as use of the session: they do not extend its idle
// timeout. It is for what a page sends by itself, such as a poll each minute: without Passive a page that is left open
// keeps its visitor logged in.
//
//	mux.Handle("GET /unread", sessions.Passive(sessions.ReadOnly(unread)))
//
// Passive can be combined with a mode in either order; without one, Options.Mode counts. Like a mode, it must be known
// before the session is opened: see [Sessions.Exclusive].
//
// A passive request may change the session. The change is saved, and the time at which the session expires stays as it
// was, unless the idle timeout is about as short as the store's Lease: see P12 in PROMISES.md. A session does not expire
// while a request holds it or waits for it. A session that a passive request begins, or gives a new ID, has its idle
// timeout from then on. In a passive request, [session.Session.Expires] returns the latest time possible, as if the
// visitor were active now, and [session.Session.Touch] counts as use.
func (s *Sessions) Passive(next http.Handler) http.Handler {
	if rt, ok := next.(*route); ok && rt.sessions == s {
		return &route{s, rt.mode, true, rt.next}
	}
	return &route{s, asOptions, true, next}
}
