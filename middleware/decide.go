package middleware

import "github.com/a2139e8d/latchkey/session"

// origin is what a request's session came from.
type origin int

const (
	noCookie  origin = iota // the request came without a session
	unknownID               // its cookie is genuine, but there is no such record
	goneID                  // its session was ended by another request
	readOnly                // a record, read without a lock
	locked                  // a record, whose lock is held
)

// action is what a commit does.
type action int

const (
	leave   action = iota // nothing at all
	touch                 // extend the idle timeout, and unlock
	save                  // write the record, and unlock
	create                // write the first record of a new id; set the cookie
	renew                 // move to a new id, and unlock; set the cookie
	destroy               // end the session, and unlock; delete the cookie
	forget                // delete a cookie that leads nowhere
	refuse                // fail: an ended session was written to
)

// decide returns what to do with a session that came from o and had change c.
//
// Where another request has ended the session, this one leaves the client's cookies alone: the
// other may have set a new one, and an answer that comes later must not take it away.
func decide(o origin, c session.Change) action {
	switch {
	case o == readOnly:
		return leave // package session has refused any change
	case o == goneID && c.Changed && !c.Destroyed:
		return refuse
	case o == goneID:
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
