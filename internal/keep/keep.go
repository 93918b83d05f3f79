// Package keep is the contract between a session and its keeper: whatever loads the session before the handler
// runs and saves it afterwards, such as package middleware. Handlers see none of it.
package keep

import (
	"context"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/internal/values"
)

// What a keeper does with a session, a *session.Session. Package session sets these functions, so that it need
// not show them to handlers.
var (
	// Open opens a session, which is new or closed, over stored data. If it fails, nothing has changed.
	Open func(session any, c Config) error
	// Close closes the session to changes, and returns what was changed. closedBy names what closes it, in the
	// report of a later change. The error is that of the first Set that failed, or wraps session.ErrReadOnly;
	// then nothing may be stored. A second Close returns no change.
	Close func(session any, closedBy string) (Change, error)
	// Used reports whether the session's content was asked for, so that the response may depend on it.
	Used func(session any) bool
)

// A Config says how a session is opened.
type Config struct {
	// Data is what an earlier commit has stored. Snapshot is the same if this process still has it; Data is
	// ignored then. Both are nil for a new session.
	Data     []byte
	Snapshot *values.Snapshot
	// MaxBytes is how large the session may get, encoded; 0: without limit. The store adds some bytes, and has
	// the last word. TooLarge is the error of a Set beyond MaxBytes.
	MaxBytes int
	TooLarge error
	// ReadOnly makes every change an error when the session is closed: session.ErrReadOnly.
	ReadOnly bool
	// Remembered: Session.Remember has given the session an end.
	Remembered bool
	// User was given to Session.Login, at LoginTime; "": nobody is logged in.
	User      string
	LoginTime time.Time
	// Keeper keeps the session for as long as it exists. Without a keeper the session has no ID, and a commit
	// saves nothing.
	Keeper Keeper
}

// A Keeper keeps one session. Any goroutine may call its methods.
type Keeper interface {
	// SessionID returns the public ID as it is now.
	SessionID() string
	// SessionExpires returns when the session would expire if it were saved now, with this change, and not used again.
	// It is zero if the session is not kept.
	SessionExpires(c Change) time.Time
	// CommitSession is what Session.Commit calls. If it saves the session, it calls Close, once.
	CommitSession(ctx context.Context) error
	// ReopenSession is what Session.Reopen calls. If it succeeds, it has called Open.
	ReopenSession(ctx context.Context) error
	// TouchSession is what Session.Touch calls.
	TouchSession(ctx context.Context) error
	// ChangedLate is called for every change after the Close, with the method, its key if any, and what
	// closed the session.
	ChangedLate(method, key, closedBy string)
}

// A Change is what a request did to its session.
type Change struct {
	// Changed: Snapshot must be stored. False for a new session that ends up empty.
	Changed bool
	// Renewed: the session gets a new ID. Renew was called, Login, or Remember in a user's session. Destroyed:
	// Destroy was called.
	Renewed, Destroyed bool
	// User was given to the last Login, at LoginTime; "": Login was not called.
	User      string
	LoginTime time.Time
	// Remembered: Remember was called, and changes something. Remember is its last argument.
	Remembered bool
	Remember   time.Duration
	// Dropped is the first key that was set after Destroy, and so is not saved.
	Dropped string
	// DroppedLogin: Login was called after Destroy, so nobody is logged in.
	DroppedLogin bool
	// Snapshot is what must be stored; nil: nothing.
	Snapshot *values.Snapshot
}

// Data returns what must be stored; nil: nothing.
func (c Change) Data() []byte {
	if c.Snapshot == nil {
		return nil
	}
	return c.Snapshot.AppendTo(nil)
}

// MaxUser is the size in bytes of the longest name of a user.
const MaxUser = 512

// LongestCookie is the longest time for which a browser keeps a cookie (RFC 6265bis).
const LongestCookie = 400 * 24 * time.Hour

// ContextKey is the key of a context's value for the session: a *session.Session or a *Lazy.
type ContextKey struct{}

// A Lazy opens a session when session.Start asks for it.
type Lazy struct {
	Open func(context.Context) (session any, err error)

	mu      sync.Mutex // guards session; held while opening, so that one request opens one session
	session any        // nil until opened
}

// Start returns the session, and opens it if it is not open. After an error the next Start tries again.
func (l *Lazy) Start(ctx context.Context) (session any, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session != nil {
		return l.session, nil
	}
	session, err = l.Open(ctx)
	if err != nil {
		return nil, err
	}
	l.session = session
	return session, nil
}

// Started returns the session, or nil if it was not opened yet.
func (l *Lazy) Started() any {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session
}
