package records

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// runLogin runs the round trip that prepareLogin has made, and ends the surplus.
//
// Expired sessions that are still on the list do not count: the user could not log out of them. So before
// runLogin refuses a login or ends another session, it takes expired sessions off the list, and the script
// counts anew. It counts anew even if prune found none, since another login may have taken them off
// meanwhile. Later logins do the same for their own surplus. So runLogin ends only sessions that both counts
// found. Nor does an unclaimed session give way before the expired ones are off the list.
func (s *Engine) runLogin(ctx context.Context, x scripting.RoundTrip, id string, within time.Duration, arrived time.Time, l *Login) error {
	tag, _, _ := cutTag(id)
	surplus, err := s.login(ctx, x, within, arrived)
	x.Args = append(x.Args, yes) // all further tries come after prune
	if errors.Is(err, errCrowded) {
		if err := s.prune(ctx, tag); err != nil {
			return err
		}
		surplus, err = s.login(ctx, x, within, arrived)
	}
	if len(surplus) == 0 && !errors.Is(err, ErrTooManySessions) {
		return err
	}
	if err := s.prune(ctx, tag); err != nil {
		return err
	}
	still, err := s.login(ctx, x, within, arrived)
	switch {
	case len(surplus) > 0 && errors.Is(err, errTaken):
		return nil // the new session was stored, and has been ended since, by a later login, for example
	case err != nil:
		return err
	}
	for _, member := range surplus {
		if !slices.Contains(still, member) {
			continue
		}
		err := s.endSession(ctx, tag+"."+member)
		if err == nil {
			l.Surplus = append(l.Surplus, tag+"."+member)
		}
		if err != nil && !errors.Is(err, ErrGone) && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrCorrupt) {
			return err
		}
	}
	return nil
}

// prune takes expired sessions off a list. A record that is gone never comes back, since one script writes a
// record and its place on the list, and an ID is used once.
func (s *Engine) prune(ctx context.Context, tag string) error {
	list := s.listKey(tag)
	replies, err := s.look(ctx, list, transport.Command{"ZRANGE", list, 0, -1})
	if err != nil {
		return err
	}
	members, _ := replies[0].([]any)
	for some := range slices.Chunk(members, tidiedAtOnce) {
		commands := make([]transport.Command, len(some))
		for i, m := range some {
			member, _ := scripting.Text(m)
			commands[i] = transport.Command{"PTTL", s.recordKey(tag + "." + string(member))}
		}
		replies, err := s.look(ctx, list, commands...)
		if err != nil {
			return err
		}
		gone := transport.Command{"ZREM", list}
		for i, left := range replies {
			if left == int64(-2) {
				gone = append(gone, some[i])
			}
		}
		if len(gone) == 2 {
			continue
		}
		if _, err := s.runner.RoundTripPlain(ctx, list, gone); err != nil {
			return err
		}
	}
	return nil
}
