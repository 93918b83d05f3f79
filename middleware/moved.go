package middleware

import (
	"context"
	"errors"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/values"
	"github.com/a2139e8d/latchkey/store"
)

// A movedID is an ID that came with a request, and that a Login or Renew has moved less than a minute ago. The zero
// movedID is none.
type movedID struct {
	id string
	to string // the new ID; "" if it cannot be known
}

// successor returns the session that id is now, after all its moves. If that session has ended, the ID is "".
func (s *Sessions) successor(ctx context.Context, id string) (_ string, r records.Record, err error) {
	const longest = 100 // moves in a minute, of one session: only a program that wrote to Redis itself exceeds that
	for range longest {
		if id == "" {
			break
		}
		r, err = s.look(ctx, id)
		next, again := errors.AsType[*records.Moved](err)
		switch {
		case again:
			id = next.To
		case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrGone):
			return "", records.Record{}, nil
		default:
			return id, r, err
		}
	}
	return "", records.Record{}, nil
}

// endSuccessor ends the session that id is, or has become. It spares a session of the user spared, unless that is "".
// If it cannot tell whose session it is, it fails. how is for observers.
func (c *commit) endSuccessor(ctx context.Context, id, spared, how string) error {
	for {
		next, record, err := c.rq.sessions.successor(ctx, id)
		if next == "" || next == c.rq.identity.knownID() || spared != "" && (err != nil || record.User == spared) {
			return err
		}
		id = next
		switch err = c.rq.sessions.store.End(ctx, id); {
		case err == nil:
			c.rq.addEvent(endOf(id, how))
			return nil
		case errors.Is(err, store.ErrGone): // perhaps it has moved on
		case errors.Is(err, store.ErrNotFound):
			return nil
		default:
			return err
		}
	}
}

// A successor is the session that an ID which came with the request has become.
type successor struct {
	came   role   // of the ID
	id     string // of the session now
	record records.Record
}

// successors returns, for a login, the sessions that the request's old IDs have become. It leaves out the request's own
// session, and sessions that have ended or cannot be read.
func (c *commit) successors(ctx context.Context) (all []successor, err error) {
	rq := c.rq
	if c.change.User == "" {
		return nil, nil
	}
	for of := range roles {
		id, record, err := rq.sessions.successor(ctx, rq.moved(of).to)
		switch {
		case errors.Is(err, store.ErrUnavailable):
			return nil, err
		case err == nil && id != "" && id != rq.identity.knownID():
			all = append(all, successor{of, id, record})
		}
	}
	return all, nil
}

// takeOver returns the IDs of the sessions that this login replaces: those of the same user that nobody has come back
// with. The responses to their logins were lost, or a second click has dropped them. The new session gets their values,
// except for keys that the handler has set.
func (c *commit) takeOver(all []successor) (instead []string) {
	for _, old := range all {
		if old.record.User != c.change.User || !old.record.Unclaimed() {
			continue
		}
		under, err := values.Parse(old.record.Encoded())
		if err != nil { // a login does not depend on what was there before
			continue
		}
		merged := c.change.Snapshot.Values()
		merged.Fill(under)
		c.change.Snapshot, instead = merged.Snapshot(), append(instead, old.id)
	}
	return instead
}

// ofAnotherUser returns the ID of the session that this login ends, or "": a member's ID that came with the request has
// become another user's session, so the browser has changed hands. A guest's ID does not count. An attacker may have
// planted it, to log others out.
func (c *commit) ofAnotherUser(all []successor) string {
	for _, old := range all {
		if user := old.record.User; old.came == member && user != "" && user != c.change.User {
			return old.id
		}
	}
	return ""
}
