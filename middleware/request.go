package middleware

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/session"
)

var (
	errBegun     = errors.New("middleware: session.Start after the response has begun: the session could not be saved before the first byte")
	errAbandoned = errors.New("middleware: the handler panicked, so its session was not saved")
	errReturned  = errors.New("middleware: Reopen after the handler has returned: work that outlives its request must use Sessions.Update")
)

// A request is one request's session, and its keep.Keeper. Three types do its work:
//
//	identity  which session it is (identity.go)
//	opening   from the IDs in the cookies to the open session (open.go)
//	commit    from what the handler has changed to the stored record (commit.go)
//
// # Mutexes
//
// mu makes an opening, a commit and a Reopen one step each, since a handler may write the response in one
// goroutine and call Commit or Reopen in another. So mu is held during round trips, and while a
// request waits for its lock. Other mutexes are locked while mu is held, and never the other way round:
//
//   - the mu of requests inside this request (nested.go), but not of requests around it;
//   - the mutex of the session.Session, and the store's;
//   - identity.mu, handlerContext.mu and the watch's, which are held for a few assignments only.
//
// The mutex of session.Start is locked before mu.
type request struct {
	sessions *Sessions
	base     *http.Request   // as it came in
	context  handlerContext  // of the handler
	lazy     context.Context // where session.Start opens the session in mode Lazy
	second   *secondRun      // not nil if the handler runs a second time: see optimistic.go
	identity identity
	nesting
	watched place        // guarded by the watch: see watch.go
	seen    *observation // by observers; or nil

	// A late change looks at these, and must not wait for a commit: see late.go.
	late         atomic.Pointer[error]    // the first change that came after the commit
	hijacked     atomic.Pointer[net.Conn] // the connection, once the handler has taken it over
	commitFailed atomic.Bool              // and its error becomes the response

	peeked atomic.Bool // the handler has looked at a session by its ID, perhaps at its own: see Peek

	holds atomic.Int64 // since when it holds its session, in Unix ns; 0: it does not; waitsForLock: see requests.go

	mu   sync.Mutex // guards the rest
	mode Mode       // written with identity.mu held, too: either mutex is enough to read it

	// What is open.
	session     *session.Session // nil until opened
	hold        *records.Hold    // not nil while locked
	first       *firstRun        // not nil if the handler runs without the lock: see optimistic.go
	waited      time.Duration    // for the lock, in all tries of this opening
	origin      origin
	role        role        // of the session; guest if there is none
	came        [roles]bool // there is a genuine cookie of the role
	startFailed bool        // a session.Start has failed
	passive     bool        // the request does not count as use: see Passive

	// What was committed.
	committed bool       // and not reopened since
	saved     bool       // a commit has changed something
	begun     bool       // the response has begun, after a commit that succeeded
	err       error      // of the last commit
	idChanges *idChanges // nil if there is none, as nearly always
}

// storeContext returns the context of the request as it came in, for package records.
func (rq *request) storeContext() context.Context {
	if rq.seen != nil {
		return rq.seen
	}
	return rq.base.Context()
}

// idChanges is what has happened to IDs, before the request and by it, with the cookies and hooks that must tell of
// it.
type idChanges struct {
	moved   [roles]movedID      // the IDs that came with the request and have moved
	cookies [roles]*http.Cookie // that the response sets or deletes; with Options.Token, one Value is the token
	events  []idEvent           // for which hooks must be called after the next commit
}

// changes returns rq.idChanges, and makes it if it is nil. It is called with mu held.
func (rq *request) changes() *idChanges {
	if rq.idChanges == nil {
		rq.idChanges = new(idChanges)
	}
	return rq.idChanges
}

// addEvent makes the commit that is under way, or the next one, call a hook. It is called with mu held.
func (rq *request) addEvent(e idEvent) {
	c := rq.changes()
	c.events = append(c.events, e)
	rq.seen.did(e)
}

// moved returns the ID of a role that came with the request and has moved, or the zero movedID. It is called with mu
// held.
func (rq *request) moved(of role) movedID {
	if rq.idChanges == nil {
		return movedID{}
	}
	return rq.idChanges.moved[of]
}

// cookies returns the cookies that the response sets or deletes, or nil. It is called with mu held.
func (rq *request) cookies() []*http.Cookie {
	if rq.idChanges == nil {
		return nil
	}
	return rq.idChanges.cookies[:]
}

// cookie returns the cookie of a role that the response sets or deletes, or nil. It is called with mu held.
func (rq *request) cookie(of role) *http.Cookie {
	if rq.idChanges == nil {
		return nil
	}
	return rq.idChanges.cookies[of]
}

// SessionID implements keep.Keeper.
func (rq *request) SessionID() string { return rq.identity.sessionID() }

// SessionExpires implements keep.Keeper.
func (rq *request) SessionExpires(c keep.Change) time.Time {
	created, own := rq.identity.stored()
	now := time.Now()
	record := records.Record{Created: time.UnixMilli(created), Own: own}
	switch created {
	case endedNow:
		return time.Time{}
	case 0: // a new session would begin now
		record = records.Record{Created: now, Own: rq.sessions.terms.Guest()}
	}
	if c.User != "" { // a login is a new beginning
		record = records.Record{Created: now}
	}
	record.Own = ownTimeouts(record.Own, c)
	return rq.sessions.terms.Expires(record, now)
}

// CommitSession implements keep.Keeper. The commit is bounded by the store's timeout and not by a
// context: it does not end with the request.
func (rq *request) CommitSession(context.Context) error {
	err := rq.commit("Commit", false)
	if late := rq.late.Load(); err == nil && late != nil {
		return *late
	}
	return err
}
