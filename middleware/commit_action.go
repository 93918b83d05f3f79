package middleware

import (
	"net/http"
	"strings"

	"github.com/a2139e8d/latchkey/internal/keep"
)

// origin says where a request's session has come from.
type origin uint8

const (
	noCookie   origin = iota // the request came without a session
	unknownID                // its cookie is genuine, but there is no such record
	goneID                   // its session was ended by another request
	gonePage                 // the same, and the request is a navigation: see navigates
	readOnly                 // a record, read without a lock
	locked                   // a stored session, for which this request has acquired the lock, or which it has begun
	optimistic               // a record, read without a lock; it may be saved
	ended                    // a commit of this request has ended the session
)

// action is what a commit does.
type action int

const (
	leave        action = iota // nothing at all
	touch                      // extend the idle timeout, and unlock
	save                       // write the record, and unlock
	create                     // write the first record of a new id; set the cookie
	anew                       // the same, in place of an ended session, whose id the request has until then
	renew                      // move to a new id, and unlock; set the cookie
	destroy                    // end the session, and unlock; delete the cookie
	forget                     // delete a cookie that leads nowhere
	refuse                     // fail: an ended session was written to
	saveUnlocked               // write the record without a lock, or acquire the lock first: see optimistic.go
)

// decide returns what to do with a session that came from o and had change c. If userLost is true, its id is a
// user's, but its record was replaced by one without a user: see Options.OnCorrupt.
//
// If another request has ended the session, the client may have a new cookie already, or get a new cookie at
// any moment. A response must not take the new cookie away. So as a rule the response leaves the client's
// cookies alone, and a write is refused.
//
// But the client may also have no other cookie: the response with the new cookie was lost, or another client
// has ended the session. If such a client could not write, it would be locked out until the tombstone expires.
// So two kinds of requests begin a new session: a request that calls Renew, since a login does not depend on
// the old session's content; and a navigation, since the browser makes one navigation at a time, and shows the
// visitor the result. Requests in the background are refused.
//
// Only a session that had ended when the request asked for it is gone in this sense. If a session is ended
// while a request holds it, its origin is still locked. The store then refuses the commit's write, even a
// Renew: ending a session also ends the requests under way in it. That includes a login, since its rights may
// be the reason for ending the session.
func decide(o origin, c keep.Change, userLost bool) action {
	gone := o == goneID || o == gonePage
	switch {
	case o == readOnly:
		return leave // package session has refused any change
	case o == optimistic && (c.Changed || c.Renewed || c.Destroyed):
		return saveUnlocked
	case o == optimistic:
		return leave
	case gone && c.Destroyed:
		return leave
	case gone && c.Renewed, o == gonePage && c.Changed:
		return anew
	case gone && c.Changed:
		return refuse
	case gone:
		return leave
	case c.Destroyed && o == locked:
		return destroy
	case c.Destroyed && o == unknownID:
		return forget
	case c.Destroyed:
		return leave
	case o == locked && (c.Renewed || c.Changed && userLost):
		return renew
	case o == locked && c.Changed:
		return save
	case o == locked:
		return touch
	case c.Changed:
		return create
	default:
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
	if mode := h.Get("Sec-Fetch-Mode"); mode != "" {
		return mode == "navigate"
	}
	return strings.Contains(h.Get("Accept"), "application/xhtml+xml") && h.Get("X-Requested-With") == ""
}
