package middleware

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/store"
)

// fetch returns the record of the first of the ids that has one, an empty one where none has, and
// sets rq.origin.
func (rq *request) fetch(ctx context.Context, ids []string) (record records.Record, err error) {
	ended := ""
	for i, id := range ids {
		record, err = rq.take(ctx, id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			// Never adopt an id that somebody else may have chosen: if this session is
			// created, it gets a new one. In mode Lazy an earlier try may have met the session.
			rq.identify("")
			rq.origin = unknownID
		case errors.Is(err, store.ErrGone):
			ended = cmp.Or(ended, id)
		default:
			rq.identify(id)
			if err == nil && i+1 < len(ids) {
				rq.reportOthers(ctx, ids[i+1:])
			}
			return record, err
		}
	}
	if ended != "" {
		rq.identify(ended)
		rq.origin = goneID
		if rq.sessions.cookies.token == nil && navigates(rq.base.Header) {
			rq.origin = gonePage
		}
	}
	return records.Record{}, nil
}

// take reads a record, and locks it unless the mode lets the handler do without. What is not there
// leaves no lock.
func (rq *request) take(ctx context.Context, id string) (record records.Record, err error) {
	switch s := rq.sessions; {
	case rq.mode == ReadOnly:
		rq.origin = readOnly
		return s.store.Load(ctx, id, s.terms)
	case rq.hold != nil: // the first run has taken it
		rq.origin = locked
		rq.hold.OnLost(rq.context.end)
		return rq.hold.Record, rq.attempt.err
	case rq.attempt != nil && rq.attempt.over == id: // the first run has looked
		return records.Record{}, rq.attempt.err
	case rq.mayRunTwice():
		if record, done, err := rq.load(ctx, id); done {
			return record, err
		}
	}
	return rq.lock(ctx, id)
}

// lock waits for a session's lock, and reads its record.
func (rq *request) lock(ctx context.Context, id string) (record records.Record, err error) {
	s := rq.sessions
	rq.origin = locked
	terms := s.terms
	// In mode Lazy a handler may try again: in what is left, but at least once.
	terms.LockWait = max(terms.LockWait-rq.waited, time.Nanosecond)
	terms.Label = rq.label()
	began := time.Now()
	rq.hold, err = s.store.Take(ctx, id, terms)
	rq.waited += time.Since(began)
	if rq.hold != nil {
		rq.hold.OnLost(rq.context.end)
		record = rq.hold.Record
	}
	return record, err
}

// reportOthers logs it where another of the request's cookies opens a session, too. Either
// the application has moved its cookie to another path or domain, or somebody has planted
// one: see SECURITY.md. It costs a round trip for each such cookie, but a Redis that is away is
// waited for only once.
func (rq *request) reportOthers(ctx context.Context, others []string) {
	terms := rq.sessions.terms
	terms.TTL = 0 // to look at a session does not extend it
	for _, id := range others {
		switch _, err := rq.sessions.store.Load(ctx, id, terms); {
		case err == nil:
			rq.log(slog.LevelWarn, "two_cookies", "request with the cookies of two sessions; the first one is used",
				slog.String("other", id))
			return
		case errors.Is(err, store.ErrUnavailable):
			return
		}
	}
}
