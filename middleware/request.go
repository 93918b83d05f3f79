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
	"github.com/a2139e8d/latchkey/internal/secret"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

var (
	errBegun     = errors.New("middleware: session.Start after the answer has begun: its session could not be saved before it")
	errAbandoned = errors.New("middleware: the handler panicked, so its session was not saved")
)

// A request is one request's session, opened once and committed once, and its keep.Keeper.
type request struct {
	sessions *Sessions
	base     *http.Request   // as it came in
	context  handlerContext  // of the handler
	outer    *request        // of other Sessions around these; nil if there are none
	sibling  *request        // the one that these had inside before this one
	lazy     context.Context // where session.Start opens the session in mode Lazy

	inner        atomic.Pointer[request] // of other Sessions inside these, the latest; nil if there are none
	commitFailed atomic.Bool
	late         atomic.Pointer[error]    // the first change that came after the commit: see late.go
	hijacked     atomic.Pointer[net.Conn] // the connection, once the handler has taken it over

	// mu guards the rest, and is held while the session is opened or committed:
	// a handler may write the answer in one goroutine and Commit in another.
	mu        sync.Mutex
	mode      Mode             // written under idMu, too
	session   *session.Session // nil until opened
	hold      *store.Hold      // not nil while locked
	waited    time.Duration    // for the lock, so far
	committed bool
	origin    origin
	err       error        // of the commit
	cookie    *http.Cookie // to be set or deleted with the answer

	// idMu guards the identity. A mutex of its own, since Session.ID may be called, and a late
	// change logged, while the commit is under way.
	idMu    sync.Mutex
	pattern string        // of the route, as far as it is known
	id      string        // the public id; empty until a new session needs one
	secret  secret.Secret // of a new session that has an id
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
		ctx = session.NewLazyContext(ctx, func(ctx context.Context) (*session.Session, error) {
			return rq.open(ctx, s.cookies.read(rq.base, nil))
		})
		rq.lazy = ctx
	} else {
		var one [1]string // there are rarely more
		ids := s.cookies.read(rq.base, one[:0])
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

// open reads the session with one of the ids, and locks it unless the mode is ReadOnly. Where no
// id leads to one it is a new one.
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
	var opened *session.Session
	record, err := rq.fetch(ctx, ids)
	if err == nil {
		opened, err = rq.decode(record)
	}
	if errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrTooLarge) {
		if err = rq.replace(err); err == nil {
			opened, err = rq.decode(store.Record{})
		}
	}
	if err != nil {
		if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
			err = fmt.Errorf("%w: %w", ended, err) // err may be a cause that somebody gave
		}
		if rq.mode == Lazy { // the handler answers this, and need not log it
			rq.logFailure(err)
		}
		return nil, err
	}
	rq.session = opened
	return opened, nil
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

func (rq *request) decode(record store.Record) (*session.Session, error) {
	limit := cmp.Or(rq.sessions.terms.MaxBytes, store.DefaultMaxBytes)
	config := keep.Config{Snapshot: record.Content}
	if _, ours := record.Content.(*session.Snapshot); !ours { // but that of a job, say, which has used the store
		config = keep.Config{Data: record.Encoded()}
	}
	config.MaxBytes, config.TooLarge = limit, store.ErrTooLarge
	config.ReadOnly, config.Keeper = rq.mode == ReadOnly, rq
	s, err := session.Open(config)
	if err != nil {
		return nil, fmt.Errorf("middleware: session %s: %w: %w", rq.knownID(), store.ErrCorrupt, err)
	}
	return s, nil
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
