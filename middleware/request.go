package middleware

import (
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

	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

var (
	// errBegun is what a Start gets that comes too late.
	errBegun = errors.New("middleware: session.Start after the answer has begun: its session could not be saved before it")
	// errAbandoned is what a Commit gets when the handler has panicked.
	errAbandoned = errors.New("middleware: the handler panicked, so its session was not saved")
)

// A request is one request's session: opened once, committed once.
type request struct {
	sessions *Sessions
	mode     Mode
	base     *http.Request           // as it came in
	cancel   context.CancelCauseFunc // ends the handler's context

	// shown is the public id that the cookie shows, or empty if it is not genuine.
	// Set before the session is opened.
	shown string

	// late is set by a change that came after the commit; the answer must not
	// look complete then.
	late atomic.Bool
	// hijacked is the connection, once the handler has taken it over.
	hijacked atomic.Pointer[net.Conn]

	// mu guards the rest, and is held while the session is opened or committed:
	// a handler may write the answer in one goroutine and Commit in another.
	mu        sync.Mutex
	origin    origin
	session   *session.Session // nil until opened
	hold      *store.Hold      // not nil while locked
	waited    time.Duration    // for the session, so far
	committed bool
	err       error        // of the commit
	cookie    *http.Cookie // to be set or deleted with the answer

	// idMu guards the identity. A mutex of its own, since Session.ID may be
	// called while the commit is under way.
	idMu   sync.Mutex
	id     string         // the public id; empty until a new session needs one
	secret session.Secret // of a new session that has an id
}

// readCookie is what comes before open.
func (rq *request) readCookie() {
	rq.shown = rq.sessions.cookies.read(rq.base)
}

// open reads the session, and locks it unless the mode is ReadOnly. It is called
// by the middleware, or in mode Lazy by session.Start.
func (rq *request) open(ctx context.Context) (*session.Session, error) {
	rq.mu.Lock()
	defer rq.mu.Unlock()
	if rq.committed {
		rq.sessions.logFailure(rq.base, rq.knownID(), errBegun)
		return nil, errBegun
	}
	record, err := rq.fetch(ctx)
	if err == nil {
		rq.session, err = session.Open(rq.config(record))
		if err != nil {
			err = fmt.Errorf("middleware: session %s: %w: %w", rq.knownID(), store.ErrCorrupt, err)
		}
	}
	if errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrTooLarge) {
		if err = rq.replace(err); err == nil {
			rq.session, err = session.Open(rq.config(store.Record{}))
		}
	}
	if err != nil {
		rq.unlock()
		rq.session = nil
		if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
			err = fmt.Errorf("%w: %w", ended, err) // whatever cause somebody gave it
		}
		if rq.mode == Lazy { // the handler answers, but somebody has to log it
			rq.sessions.logFailure(rq.base, rq.knownID(), err)
		}
		return nil, err
	}
	return rq.session, nil
}

// fetch returns what is stored, nothing where there is none, and sets rq.origin.
func (rq *request) fetch(ctx context.Context) (record store.Record, err error) {
	s, id := rq.sessions, rq.shown
	if id == "" {
		return record, nil
	}
	if rq.mode == ReadOnly {
		rq.origin = readOnly
		record, err = s.store.Load(ctx, id, s.terms)
	} else {
		rq.origin = locked
		terms := s.terms.After(rq.waited) // in mode Lazy a handler may try again
		terms.Label = label(rq.base)
		began := time.Now()
		rq.hold, err = s.store.Take(ctx, id, terms)
		rq.waited += time.Since(began)
		if rq.hold != nil {
			rq.hold.OnLost(rq.cancel)
			record = rq.hold.Record
		}
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		// Never adopt an id that somebody else may have chosen: if this session
		// comes into being, it does so under a new one.
		rq.origin = unknownID
		return record, nil
	case errors.Is(err, store.ErrGone):
		rq.origin, err = goneID, nil
	}
	rq.identify(id)
	return record, err
}

// label tells who waits for the session what holds it: the method, and the pattern of
// the route where a router has found it before the session is opened. Any part of the
// path itself may be a secret, as in the link of a mail.
func label(r *http.Request) string {
	if r.Pattern == "" {
		return r.Method
	}
	_, route, found := strings.Cut(r.Pattern, " ")
	if !found {
		route = r.Pattern
	}
	return r.Method + " " + route
}

// replace asks OnCorrupt whether to go on without the record.
func (rq *request) replace(err error) error {
	if ask := rq.sessions.options.OnCorrupt; ask != nil {
		if verdict := ask(rq.base, err); verdict != nil {
			return verdict
		}
		rq.sessions.log(rq.base.Context(), slog.LevelError, "session replaced by an empty one",
			slog.String("session", rq.publicID()), slog.Any("error", err))
		return nil
	}
	return err
}

func (rq *request) config(record store.Record) session.Config {
	memory, _ := record.Memory.(*session.Memory) // of the request before, if it was in this process
	return session.Config{
		Data:     record.Data,
		Memory:   memory,
		ReadOnly: rq.mode == ReadOnly,
		Keeper:   keeper{rq},
	}
}

// handBack gives the request that came in what the handler's copy of it has
// learnt: net/http removes the temporary files of an upload, and loggers like to
// know the pattern.
func (rq *request) handBack(r *http.Request) {
	if rq.base.MultipartForm == nil {
		rq.base.MultipartForm = r.MultipartForm
	}
	if rq.base.Pattern == "" {
		rq.base.Pattern = r.Pattern
	}
}

func (rq *request) identify(id string) {
	rq.idMu.Lock()
	defer rq.idMu.Unlock()
	rq.id = id
}

// publicID returns the session's public id. A new session gets its secret when
// somebody asks: most never need one.
func (rq *request) publicID() string {
	rq.idMu.Lock()
	defer rq.idMu.Unlock()
	if rq.id == "" {
		rq.secret = session.NewSecret()
		rq.id = rq.secret.ID()
	}
	return rq.id
}

// knownID is publicID for a log: it does not invent one.
func (rq *request) knownID() string {
	rq.idMu.Lock()
	defer rq.idMu.Unlock()
	return rq.id
}
