package middleware

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
)

// Info is what is known about a session without opening it.
type Info struct {
	// ID is the public ID.
	ID string
	// User that the session belongs to, and Device of the login: see Session.Login and Options.Device. Both are
	// empty if no user is logged in.
	User, Device string
	// Created is when the session began. For a user's session that is the login. A Renew does not change it.
	Created time.Time
	// Seen is when the session was last used, to a second or so. It is computed from the time to live, and
	// zero if that is impossible: for remembered sessions, and for those last used in the last TTL before
	// Lifetime ends.
	Seen time.Time
	// Expires is when the session expires if it is not used any more.
	Expires time.Time
}

// Peek looks at the session with a public ID. It does not extend the session, and does not wait for its
// lock. The error wraps store.ErrNotFound if the ID is unknown or malformed, or its session has expired; store.ErrGone
// if the session was ended less than a minute ago; store.ErrMoved if it got a new ID less than a minute ago;
// store.ErrUnavailable; or the error of a record that cannot be read. Peek does not log its error: log it.
func (s *Sessions) Peek(ctx context.Context, id string) (Info, error) {
	if !isID(id) {
		return Info{}, errUnknown
	}
	if rq := s.requestOf(ctx); rq != nil {
		rq.peeked.Store(true)
	}
	record, expires, err := s.store.Peek(ctx, id, s.terms)
	if err != nil {
		return Info{}, err
	}
	return Info{ID: id, User: record.User, Device: record.Device, Created: record.Created,
		Seen: s.terms.Seen(record, time.Now(), expires).Round(0), Expires: expires.Round(0)}, nil
}

// look reads the record of a session without extending it.
func (s *Sessions) look(ctx context.Context, id string) (records.Record, error) {
	terms := s.terms
	terms.TTL = 0
	return s.store.Load(ctx, id, terms)
}

// List returns the sessions of a user, newest first. It waits for no lock, and extends none of the
// sessions. It takes one round trip to Redis, and one more for each 25 sessions. The current session is
// the one whose ID is session.FromContext(ctx).ID(). A user without sessions is not an error, nor is "", which
// Session.User returns if nobody is logged in.
//
// The error wraps store.ErrUnavailable, or store.ErrCorrupt if another program has written the list.
// A user of more than 512 bytes is an error, too. List does not log its error: log it.
func (s *Sessions) List(ctx context.Context, user string) ([]Info, error) {
	if user == "" {
		return nil, nil
	}
	listed, err := s.store.ListUser(ctx, user, s.terms)
	if err != nil {
		return nil, err
	}
	infos := make([]Info, len(listed))
	for i, l := range listed {
		// Round(0) removes the monotonic clock, which users would see.
		infos[i] = Info{ID: l.ID, User: l.User, Device: l.Device, Created: l.Created,
			Seen: l.Seen.Round(0), Expires: l.Expires.Round(0)}
	}
	return infos, nil
}

// End ends the session with a public ID at once, and does not wait for its lock: a request that holds the
// session cannot save it any more, not even with Renew or Login. The context of every request that has opened the
// session ends within two seconds, but not the caller's own. The client is logged out with its next request. If
// another request gave the session a new ID less than a minute ago, End ends it under that ID, unless it is another
// user's by then.
//
// The error wraps store.ErrNotFound if the ID is unknown or malformed, or its session has expired; store.ErrGone if
// the session was ended less than a minute ago; store.ErrCorrupt if the record is not a session, and was left as it
// is; or store.ErrUnavailable: then the session may have been ended, and it does no harm to call End again. End does
// not log its error: log it.
//
// Before a user ends a session, check that it is the user's session: [Sessions.List] has the IDs.
func (s *Sessions) End(ctx context.Context, id string) error {
	if !isID(id) {
		return errUnknown
	}
	back := s.stepAside(ctx)
	present, err := s.store.EndPresent(ctx, id, s.terms)
	if err != nil {
		back()
		return err
	}
	back(id, present)
	s.happened(ctx, endOf(present, "end"))
	return nil
}

// EndAll ends all sessions of a user, except the sessions with the IDs in except, like [Sessions.End], in one
// step: there is no moment at which only some of them have ended. (While keys of store.Encryption are changed,
// it takes several steps: see P14 in PROMISES.md.)
//
// EndAll returns how many sessions it has ended, some of which may already have expired. If a connection to Redis
// broke and the command was sent again, EndAll returns a smaller number, and Hooks.End is not called for the other
// sessions. For a user without sessions it returns 0 and no error.
//
// The error wraps store.ErrUnavailable: then the sessions may have been ended, and it does no harm to call EndAll
// again. An empty user is an error, and so is one of more than 512 bytes. EndAll does not log its error: log it.
//
// For example, to keep the session of the request itself after a new password:
//
//	n, err := sessions.EndAll(ctx, user, s.ID())
//	s.Renew()
//
// Without except the request's own session ends, too: call Destroy, so that the client deletes its cookie. But in mode
// ReadOnly, which refuses Destroy, the client keeps its cookie, which opens nothing any more.
//
// If the request of a login arrived before EndAll was done, and the login would be stored after EndAll, the login
// is refused, with an error that wraps store.ErrGone: it may have checked a password that was changed since.
// If EndAll succeeds, the request to which ctx belongs may log the user in: its login counts as having arrived after
// EndAll. If the request's own session was one of those, the login begins another one, with the same values.
//
// If except contains a malformed ID, EndAll fails and ends nothing. Empty strings are ignored.
func (s *Sessions) EndAll(ctx context.Context, user string, except ...string) (int, error) {
	for _, id := range except {
		if id != "" && !isID(id) {
			return 0, errNoID
		}
	}
	back := s.stepAside(ctx)
	ended, err := s.store.EndUser(ctx, user, except...)
	back(ended...)
	if err == nil {
		s.mayLogIn(ctx, user, except)
	}
	for _, id := range ended {
		s.happened(ctx, endOf(id, "end_all"))
	}
	return len(ended), err
}

// mayLogIn makes a later login of the user count as having arrived now, in the requests that ctx belongs to. If a
// request's own session was ended, that login begins another one.
func (s *Sessions) mayLogIn(ctx context.Context, user string, except []string) {
	for rq := range s.requestsOn(ctx) {
		rq.identity.hasEndedAll(user, s.endedBy(user, except, rq.identity.knownID()))
	}
}

// endedBy returns the ID if an EndAll of the user, with these exceptions, has ended its session. Otherwise it returns "".
func (s *Sessions) endedBy(user string, except []string, id string) string {
	if s.store.Finds(user, id) && !slices.Contains(except, id) {
		return id
	}
	return ""
}

// device returns what Options.Device says of a request that logs in.
func (s *Sessions) device(r *http.Request) string {
	if s.options.Device == nil {
		return ""
	}
	text := s.options.Device(r)
	return strings.ToValidUTF8(text[:min(len(text), records.MaxDevice)], "")
}
