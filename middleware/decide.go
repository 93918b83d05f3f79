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
	locked                   // a record, whose lock is held
	optimistic               // a record, read without a lock; it may be saved
	ended                    // none any more: a commit of this request has ended it
)

// action is what a commit does.
type action int

const (
	leave        action = iota // nothing at all
	touch                      // extend the idle timeout, and unlock
	save                       // write the record, and unlock
	create                     // write the first record of a new id; set the cookie
	anew                       // the same in place of an ended session, whose id is the request's until then
	renew                      // move to a new id, and unlock; set the cookie
	destroy                    // end the session, and unlock; delete the cookie
	forget                     // delete a cookie that leads nowhere
	refuse                     // fail: an ended session was written to
	saveUnlocked               // write the record without a lock, or acquire that and see
)

// decide returns what to do with a session that came from o and had change c.
//
// If another request has ended the session, the client may have a new cookie by now, or get one at any
// moment. A later response must not take that cookie away, so as a rule this one leaves the client's
// cookies alone, and a write is refused. But the client may as well have no other cookie: the response
// with the new one was lost, or somebody else has ended the session. If it could not write then, it
// would be shut out until the tombstone is gone. So two kinds of requests begin a new session: one that
// calls Renew, since a login does not depend on what was in the session before; and a navigation, since
// the browser shows the visitor what comes of it and makes one at a time. Requests that run in the
// background meanwhile are refused.
//
// Only a session that had ended when the request came for it is gone in this sense. One that is
// ended while a request holds it, by a command from elsewhere, is still locked to decide. The
// store then refuses what the commit writes, also a Renew: whoever ends a session ends what is
// under way in it, a login included, whose rights may be the reason.
func decide(o origin, c keep.Change) action {
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
	case o == locked && c.Renewed:
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
// application may live in one.
//
// Browsers say so in Sec-Fetch-Mode, which no script can set, but only over HTTPS or to localhost,
// and Safari since 16.4. Without that header a request is a navigation if Accept names XHTML: all
// browsers send that when they navigate, and no fetch or XMLHttpRequest does unless its script sets the
// header. A prefetch is no navigation, since the visitor does not see the page yet. In doubt a request is
// no navigation: the harm is an error instead of a new session.
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
