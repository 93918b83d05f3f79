package session

import "context"

// Touch counts as use of the session, and extends its idle timeout, in one round trip to Redis. It is for streams and
// websockets: an open connection does not count as use, so call Touch if the visitor has done something, or every few
// minutes if being connected is use enough. It also counts in a request of Sessions.Passive.
//
// Touch needs no lock, and does not wait for other requests. It can be called before and after the commit, and changes
// nothing else.
//
// If the session has ended or expired, the error wraps [ErrEnded] and the store's error. If another request has given
// it a new ID, by Login, Renew or Remember, the session was not ended, and the error wraps the store's ErrMoved. From
// then on only requests with the new ID count as use of the session, so make the client connect again: it has the new
// cookie.
//
// Touch does not move an absolute timeout, or an end set by Remember. A session that is not stored yet has no timeout,
// and Touch returns nil.
func (s *Session) Touch(ctx context.Context) error {
	if s.keeper == nil {
		return nil
	}
	return s.keeper.TouchSession(ctx)
}
