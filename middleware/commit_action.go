package middleware

import (
	"net/http"
	"strings"

	"github.com/a2139e8d/latchkey/internal/keep"
)

// origin says where a request's session has come from.
type origin uint8

const (
	none       origin = iota // no cookie leads to a session
	readOnly                 // a record, read without a lock
	locked                   // a stored session, for which this request has acquired the lock, or which it has begun
	optimistic               // a record, read without a lock; it may be saved
	ended                    // a commit of this request has ended the session
)

// isStored reports whether the session has a record, as far as this request knows.
func (o origin) isStored() bool { return o == readOnly || o == locked || o == optimistic }

// action is what a commit does.
type action int

const (
	leave        action = iota // nothing at all
	touch                      // extend the idle timeout, and unlock
	save                       // write the record, and unlock
	create                     // write the first record of a new ID; set the cookie
	renew                      // move to a new ID, and unlock; set the cookie
	destroy                    // end the session, and unlock; delete the cookies that came
	forget                     // delete the cookies that came, which lead nowhere
	refuse                     // fail: the client is about to get the cookie of another ID
	saveUnlocked               // write the record without a lock, or acquire the lock first: see optimistic.go
)

// A situation is all that decides what a commit does, besides the change.
type situation struct {
	origin      origin
	movedMember bool // a member's ID that came with the request has moved, and no other one opens a session
	// crossed: with cookies, an ID that came with the request has moved, no member's cookie opens a session, and the
	// request is no navigation. With a token, the token leads to no session.
	crossed bool
	// userLost: the session's ID is a user's, but its record was replaced by one without a user: see
	// Options.OnCorrupt.
	userLost bool
	// over: an EndAll of this request has ended its own session, and the request logs the same user in.
	over bool
}

// situation is called with mu held. user is whom the request logs in, or "".
func (rq *request) situation(user string) situation {
	movedMember, movedGuest := rq.moved(member).id != "", rq.moved(guest).id != ""
	if rq.role == member { // another of its cookies has moved
		movedMember, movedGuest = false, false
	}
	crossed := (movedMember || movedGuest) && !navigates(rq.base.Header)
	if rq.sessions.cookies.token != nil {
		crossed = rq.origin == none && rq.came != [roles]bool{}
	}
	return situation{
		origin:      rq.origin,
		movedMember: movedMember,
		crossed:     crossed,
		userLost:    rq.hold != nil && rq.hold.Record.User == "" && isOfUser(rq.identity.knownID()),
		over:        user != "" && rq.identity.hasEndedOwn(user),
	}
}

// decide returns what to do with a session that had change c.
//
// A cookie that leads nowhere is as good as none, so a write begins a guest's session. There is one exception. If an
// ID was moved less than a minute ago, the response with the new cookie is probably on its way. What a crossing
// request writes elsewhere would be lost to its client, so that write is refused. A Renew of a member's ID is
// refused, too, since the ID has moved already. A login is not refused: it does not depend on the session's content.
// The write of a navigation is not refused either: the browser makes one at a time, and shows the visitor
// the result.
//
// If a session is ended while a request holds it, the request's origin is still locked. The store then refuses the
// commit's write, even a Renew: ending a session also ends the requests under way in it. That includes a login, since
// the login's rights may be the reason for ending the session. But a request that has called EndAll itself may log the
// user in, as after a forgotten password: that login begins another session.
func decide(s situation, c keep.Change) action {
	o, loggedIn := s.origin, c.User != ""
	switch {
	case o == readOnly: // package session has refused any change
		return leave
	case !c.Changed && !c.Renewed && !c.Destroyed && o == locked:
		return touch
	case !c.Changed && !c.Renewed && !c.Destroyed:
		return leave
	case o == optimistic && c.Destroyed:
		return saveUnlocked
	case o == locked && c.Destroyed:
		return destroy
	case c.Destroyed:
		return forget
	case c.Renewed && !loggedIn && s.movedMember, !c.Renewed && s.crossed:
		return refuse
	case s.over && (o == locked || o == optimistic):
		return create
	case o == optimistic:
		return saveUnlocked
	case o == locked && (c.Renewed || s.userLost):
		return renew
	case o == locked:
		return save
	case c.Changed:
		return create
	default: // a Renew of nothing
		return leave
	}
}

// navigates reports whether a request with this header was sent by a browser that goes to another
// page: by a link, a form, a reload or the address bar. A frame counts, too, since a whole
// application may live in a frame.
//
// Browsers say so in Sec-Fetch-Mode, which no script can set, but only over HTTPS or to localhost, and Safari
// only since 16.4. Without that header a request is a navigation if its Accept header names XHTML: all
// browsers send XHTML there when they navigate, and a fetch or XMLHttpRequest does so only if its script sets
// the header. A prefetch is not a navigation, since the visitor does not see the page yet. In doubt a request
// is not a navigation: the harm is an error instead of a new session.
func navigates(h http.Header) bool {
	purpose, _, _ := strings.Cut(h.Get("Sec-Purpose"), ";") // prefetch, or prefetch;prerender
	if strings.EqualFold(strings.TrimSpace(purpose), "prefetch") {
		return false
	}
	switch h.Get("Sec-Fetch-Mode") {
	case "navigate":
		return true
	case "", "same-origin": // same-origin: a service worker in Firefox has passed a navigation on
		return strings.Contains(h.Get("Accept"), "application/xhtml+xml") && h.Get("X-Requested-With") == ""
	default:
		return false
	}
}
