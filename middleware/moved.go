package middleware

import (
	"context"
	"errors"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/store"
)

// A movedID is an id that came with a request, and that a Login or Renew has moved less than a minute ago.
type movedID struct {
	cameID
	to string // the new id; "" if it cannot be known
}

// successor returns the session that id is, or has become, or "" if that has ended.
func (s *Sessions) successor(ctx context.Context, id string) (_ string, r records.Record, err error) {
	const longest = 8 // moves in a minute, of one session
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

// endSuccessor ends the session that a member's moved id has become: at a logout, and at a login of another user
// than stays, since the browser has changed hands then. It does not end that of a guest's moved id: whoever has
// planted a guest's cookie could log its visitors out.
func (c *commit) endSuccessor(ctx context.Context, stays string) error {
	rq, s := c.rq, c.rq.sessions
	moved := rq.came.moved
	if moved.id == "" || moved.kind != member {
		return nil
	}
	for {
		id, record, err := s.successor(ctx, moved.to)
		if id == "" || id == rq.identity.knownID() || err == nil && stays != "" && record.User == stays {
			return err
		}
		switch err = s.store.End(ctx, id); {
		case err == nil:
			c.done = append(c.done, event{do: destroy, old: id})
			return nil
		case errors.Is(err, store.ErrGone): // perhaps it has moved on
			moved.to = id
		case errors.Is(err, store.ErrNotFound):
			return nil
		default:
			return err
		}
	}
}
