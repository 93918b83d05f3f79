package middleware

import (
	"context"
	"time"
)

// Info is what is known of a session without opening it.
type Info struct {
	// ID is the public id.
	ID string
	// User that the session belongs to, and Device where it was begun: see session.Login and
	// Options.Device. Both are empty for one that nobody has logged in to.
	User, Device string
	// Created is when the session began; a new id does not change it.
	Created time.Time
	// Seen is when the session was used last, to a second or so. It is zero where that is not known,
	// since nothing is written for it: of a session that is remembered, and in the last TTL of its
	// Lifetime.
	Seen time.Time
	// Expires is when the session ends if it is not used any more.
	Expires time.Time
}

// Peek looks at the session with a public id: it does not prolong it, and waits for nobody. The
// error wraps store.ErrNotFound where the id is unknown or its session has timed out,
// store.ErrGone where the session was ended less than a minute ago, store.ErrUnavailable, or what
// is wrong with the record.
func (s *Sessions) Peek(ctx context.Context, id string) (Info, error) {
	if !isID(id) {
		return Info{}, errNoID
	}
	record, expires, err := s.store.Peek(ctx, id, s.terms)
	if err != nil {
		return Info{}, err
	}
	return Info{ID: id, User: record.User, Device: record.Device, Created: record.Created,
		Seen: s.terms.Seen(record, time.Now(), expires).Round(0), Expires: expires.Round(0)}, nil
}
