package middleware

import (
	"context"
	"errors"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/values"
	"github.com/a2139e8d/latchkey/store"
)

// A movedID is an id that came with a request, and that a Login or Renew has moved less than a minute ago. The zero
// movedID is none.
type movedID struct {
	id string
	to string // the new id; "" if it cannot be known
}

// successor returns the session that id is, or has become, or "" if that has ended.
func (s *Sessions) successor(ctx context.Context, id string) (_ string, r records.Record, err error) {
	const longest = 100 // moves in a minute, of one session: only a program that wrote to Redis itself exceeds that
	look := s.terms
	look.TTL = 0 // to look at a session does not extend it
	for range longest {
		if id == "" {
			break
		}
		r, err = s.store.Load(ctx, id, look)
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

// endSuccessor ends the session that id is, or has become.
func (c *commit) endSuccessor(ctx context.Context, id string) error {
	for {
		next, _, err := c.rq.sessions.successor(ctx, id)
		if next == "" || next == c.rq.identity.knownID() {
			return err
		}
		id = next
		switch err = c.rq.sessions.store.End(ctx, id); {
		case err == nil:
			c.rq.addEvent(event{do: destroy, old: id})
			return nil
		case errors.Is(err, store.ErrGone): // perhaps it has moved on
		case errors.Is(err, store.ErrNotFound):
			return nil
		default:
			return err
		}
	}
}

// takeOver returns a context for what begins an id. It is for a login that comes with ids that have moved.
//
// If such an id has become a session of the same user, and nobody has come back with it, then a login's response was
// lost, or dropped by a second click. The new session takes the values of that one over, under those that the handler
// has set, and replaces it.
//
// If a member's id has become a session of another user, the browser has changed hands, and that session must end as
// soon as the login is stored: takeOver returns its id as other. A login that is refused ends nothing. A guest's id may
// have been planted by somebody who could log other people out in this way.
func (c *commit) takeOver(ctx context.Context) (_ context.Context, other string, _ error) {
	rq, user := c.rq, c.change.User
	if user == "" {
		return ctx, "", nil
	}
	var instead []string
	for k := range kinds {
		id, record, err := rq.sessions.successor(ctx, rq.moved(k).to)
		switch {
		case errors.Is(err, store.ErrUnavailable):
			return ctx, "", err
		case err != nil, id == "", id == rq.identity.knownID():
		case record.User == user && record.Unclaimed():
			under, err := values.Parse(record.Encoded())
			if err != nil { // a login does not depend on what was there before
				continue
			}
			all := c.change.Snapshot.Values()
			all.Fill(under)
			c.change.Snapshot, instead = all.Snapshot(), append(instead, id)
		case record.User != "" && record.User != user && k == member:
			other = id
		}
	}
	return records.WithInstead(records.WithArrival(ctx, rq.identity.arrival()), instead), other, nil
}
