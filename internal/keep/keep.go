// Package keep is the contract between a session and its keeper: whatever loads
// it before the handler runs and saves it afterwards, such as package middleware.
package keep

import (
	"context"
	"time"
)

// A Config is how a keeper opens a session.
type Config struct {
	// Data is what an earlier commit encoded, and Snapshot the *session.Snapshot of it, where this
	// process still has that: Data is not looked at then. Both are nil for a new session.
	Data     []byte
	Snapshot any
	// MaxBytes is how large the session may get, encoded; 0: as large as it likes. The store adds
	// some bytes of its own, and has the last word. TooLarge is the error of a Set beyond that.
	MaxBytes int
	TooLarge error
	// ReadOnly makes every change an error at the commit: session.ErrReadOnly.
	ReadOnly bool
	// Remembered: the session has an end of its own, see session.Session.Remember.
	Remembered bool
	// User that the session belongs to, see session.Session.Login; "": none.
	User string
	// Keeper of the session. Without one, the session has no id, and a commit saves nothing.
	Keeper Keeper
}

// A Keeper keeps one session. Its methods may be called by any goroutine.
type Keeper interface {
	// SessionID returns the public id as it is at the time of the call.
	SessionID() string
	// SessionExpires returns when the session would end if it were saved now and not used any more:
	// after a Renew, if renewed, which was a Login if loggedIn; after a Remember(d), if remembered. It
	// is zero where none is kept.
	SessionExpires(renewed, loggedIn, remembered bool, d time.Duration) time.Time
	// CommitSession is what Session.Commit calls. If it saves the session, it calls Seal, once.
	CommitSession(ctx context.Context) error
	// ReopenSession is what Session.Reopen calls. If it succeeds, it has called Resume.
	ReopenSession(ctx context.Context) error
	// ChangedLate is called for every change that comes after the Seal, with the
	// method, its key if any, and what sealed the session.
	ChangedLate(method, key, sealed string)
}

// LongestCookie is the longest time for which a browser keeps a cookie (RFC 6265bis).
const LongestCookie = 400 * 24 * time.Hour

// ContextKey is the key of a context's value for the session: a *session.Session, or what package
// session makes of one that is to be opened.
type ContextKey struct{}
