package middleware

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/secret"
	"github.com/a2139e8d/latchkey/internal/values"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

var (
	errBegun     = errors.New("middleware: session.Start after the answer has begun: its session could not be saved before it")
	errAbandoned = errors.New("middleware: the handler panicked, so its session was not saved")
	errReturned  = errors.New("middleware: Reopen after the handler has returned: what outlives its request uses Sessions.Update")
)

// A request is one request's session, which is opened and committed, once unless it is reopened,
// and its keep.Keeper.
type request struct {
	sessions *Sessions
	base     *http.Request   // as it came in
	context  handlerContext  // of the handler
	outer    *request        // of other Sessions around these; nil if there are none
	sibling  *request        // the one that these had inside before this one
	lazy     context.Context // where session.Start opens the session in mode Lazy

	inner    atomic.Pointer[request]  // of other Sessions inside these, the latest; nil if there are none
	late     atomic.Pointer[error]    // the first change that came after the commit: see late.go
	hijacked atomic.Pointer[net.Conn] // the connection, once the handler has taken it over

	// mu guards the rest, and is held while the session is opened or committed:
	// a handler may write the answer in one goroutine and Commit in another.
	mu        sync.Mutex
	mode      Mode             // written under idMu, too
	session   *session.Session // nil until opened
	hold      *records.Hold    // not nil while locked
	attempt   *attempt         // in mode Optimistic
	waited    time.Duration    // for the lock, since it was to be opened
	refused   bool             // a session.Start has failed
	committed bool             // and not reopened since
	saved     bool             // a commit has changed something
	begun     bool             // the answer has, after a commit that succeeded
	origin    origin

	commitFailed atomic.Bool // not guarded; it is here since it takes no memory of its own

	err    error        // of the last commit
	cookie *http.Cookie // to be set or deleted with the answer; of a token, its Value is that

	// idMu guards the identity. A mutex of its own, since Session.ID may be called, and a late
	// change logged, while the commit is under way.
	idMu    sync.Mutex
	pattern string         // of the route, as far as it is known
	id      string         // the public id; empty until a new session needs one
	secret  secret.Secret  // of a new session that has an id
	created int64          // Unix ms: what is stored began then; 0: nothing is, or endedNow
	own     *records.Times // of what is stored
	arrived time.Time      // the request; or its last EndAll was done then, since a login in it comes after that
}

// start returns the handler's request, whose context has the session: opened, or
// in mode Lazy to be opened by session.Start.
func (rq *request) start() (*http.Request, error) {
	s, body := rq.sessions, rq.base.Body
	if rq.mode < Exclusive || rq.mode > Lazy {
		return nil, fmt.Errorf("%w: %v", errUnknownMode, rq.mode)
	}
	rq.reportSharedCookie()
	ctx := context.Context(&rq.context)
	if rq.mode == Lazy {
		ctx = context.WithValue(ctx, keep.ContextKey{}, &keep.Lazy{Open: func(ctx context.Context) (any, error) {
			return rq.open(ctx, s.cookies.read(rq.base, nil))
		}})
		rq.lazy = ctx
	} else {
		var one [1]string // there are rarely more
		ids := one[:0]
		if rq.hold != nil { // a second run
			ids = append(ids, rq.knownID())
		} else {
			ids = s.cookies.read(rq.base, ids)
		}
		if len(ids) > 0 && rq.mode != ReadOnly {
			body = readAhead(rq.base, s.options.Buffer)
		}
		var err error
		if rq.context.session, err = rq.open(rq.base.Context(), ids); err != nil {
			return nil, err
		}
	}
	r := rq.base.WithContext(ctx)
	r.Body = body
	return r, nil
}

// open reads the session with one of the ids, and locks it unless the mode lets the handler do
// without. Where no id leads to one it is a new one.
func (rq *request) open(ctx context.Context, ids []string) (*session.Session, error) {
	rq.mu.Lock()
	defer func() {
		if rq.session == nil { // it failed, or OnCorrupt has panicked
			rq.unlock()
		}
		rq.mu.Unlock()
	}()
	if rq.committed {
		rq.logFailure(errBegun)
		return nil, errBegun
	}
	if rq.mode == Optimistic {
		if err := safe(rq.base.Method); err != nil {
			return nil, err
		}
	}
	record, err := rq.fetch(ctx, ids)
	opened, err := rq.use(ctx, record, err)
	if err != nil {
		if rq.mode == Lazy { // the handler answers this, and need not log it
			rq.refused = true
			rq.logFailure(err)
		}
		return nil, err
	}
	rq.session = opened
	return opened, nil
}

// use returns the session over a record that was read, with err.
func (rq *request) use(ctx context.Context, record records.Record, err error) (used *session.Session, _ error) {
	if err == nil {
		used, err = rq.decode(record)
	}
	if errors.Is(err, store.ErrCorrupt) && rq.origin == optimistic { // what is replaced is locked: see load
		rq.attempt = &attempt{again: true}
		if record, err = rq.fetch(ctx, []string{rq.knownID()}); err == nil {
			used, err = rq.decode(record)
		}
	}
	if errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrTooLarge) {
		if err = rq.replace(err); err == nil {
			used, err = rq.decode(records.Record{})
			if rq.hold != nil { // what takes its place begins now, and nobody is logged in to it
				r := &rq.hold.Record
				r.Created, r.Own, r.User, r.Device = time.Now(), rq.sessions.terms.Guest(), "", ""
			}
		}
	}
	return used, endedWith(ctx, err)
}

// endedWith returns err, which wraps that of ctx if that has ended: err may be a cause that somebody
// gave.
func endedWith(ctx context.Context, err error) error {
	if ended := ctx.Err(); err != nil && ended != nil && !errors.Is(err, ended) {
		return fmt.Errorf("%w: %w", ended, err)
	}
	return err
}

// label says what holds the session, to those that wait for it: the method, and the route's
// pattern where a router has found it. No part of the path itself, which may be a secret, as in
// the link of a mail.
func (rq *request) label() string {
	if label := rq.sessions.options.Label; label != nil {
		return label(rq.base)
	}
	if route := rq.route(); route != "" {
		return clip(rq.base.Method) + " " + route
	}
	return clip(rq.base.Method)
}

// route returns the pattern without its method.
func (rq *request) route() string {
	rq.idMu.Lock()
	defer rq.idMu.Unlock()
	return rq.pattern[strings.Index(rq.pattern, " ")+1:]
}

// replace asks OnCorrupt whether to go on without the record.
func (rq *request) replace(err error) error {
	if ask := rq.sessions.options.OnCorrupt; ask != nil {
		if verdict := ask(rq.base, err); verdict != nil {
			return verdict
		}
		rq.log(slog.LevelError, "replaced", "session replaced by an empty one", slog.Any("error", err))
		return nil
	}
	return err
}

// decode returns the request's session over a record: a new one, or the one that is reopened.
func (rq *request) decode(record records.Record) (*session.Session, error) {
	config := rq.sessions.config(record)
	config.ReadOnly, config.Keeper = rq.mode == ReadOnly, rq
	s := rq.session
	if s == nil {
		s = new(session.Session)
	}
	if err := keep.Open(s, config); err != nil {
		return nil, fmt.Errorf("middleware: session %s: %w: %w", rq.knownID(), store.ErrCorrupt, err)
	}
	rq.note(record.Created, record.Own)
	return s, nil
}

// config returns how to open the session over a record.
func (s *Sessions) config(record records.Record) keep.Config {
	var config keep.Config
	var ours bool
	if config.Snapshot, ours = record.Content.(*values.Snapshot); !ours { // but that of a job, say, which has used the store
		config.Data = record.Encoded()
	}
	config.User = record.User
	config.Remembered = record.Own != nil && !record.Own.Until.IsZero()
	config.MaxBytes, config.TooLarge = cmp.Or(s.terms.MaxBytes, records.DefaultMaxBytes), store.ErrTooLarge
	return config
}

// handBack gives the request that came in what was set in r, the handler's copy:
// net/http removes the temporary files of an upload, and loggers show the pattern.
func (rq *request) handBack(r *http.Request) {
	rq.base.MultipartForm = cmp.Or(rq.base.MultipartForm, r.MultipartForm)
	rq.base.Pattern = cmp.Or(rq.base.Pattern, r.Pattern)
	rq.idMu.Lock()
	defer rq.idMu.Unlock()
	rq.pattern = cmp.Or(rq.pattern, r.Pattern)
}

// arrival is when the request counts as one that has arrived.
func (rq *request) arrival() time.Time {
	rq.idMu.Lock()
	defer rq.idMu.Unlock()
	return rq.arrived
}

// arrive makes the request count as one that has arrived now.
func (rq *request) arrive() {
	rq.idMu.Lock()
	defer rq.idMu.Unlock()
	rq.arrived = time.Now()
}

func (rq *request) identify(id string) {
	rq.idMu.Lock()
	defer rq.idMu.Unlock()
	rq.id = id
}

// SessionID returns the session's public id. A new session gets its secret when
// it is asked for: most never need one.
func (rq *request) SessionID() string {
	rq.idMu.Lock()
	defer rq.idMu.Unlock()
	if rq.id == "" {
		rq.secret = secret.New()
		rq.id = rq.secret.ID()
	}
	return rq.id
}

// knownID is SessionID for a log: it does not make one up.
func (rq *request) knownID() string {
	rq.idMu.Lock()
	defer rq.idMu.Unlock()
	return rq.id
}

// CommitSession commits. That is bounded by the store's timeout, not by a context:
// it does not end with the request.
func (rq *request) CommitSession(context.Context) error { return rq.commit("Commit") }
