package records

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker/transport"
)

var errTag = errors.New("store: the id of a user's session begins with the user's tag, and no other does")

// prepareLogin makes x, which is to create the record of a user's session, put it on the list as well.
// old is the id of the session that it takes the place of, or "".
func (s *Engine) prepareLogin(
	x *scripting.RoundTrip, keys sessionKeys, old string, r *Record, t Terms, now time.Time,
) {
	before := ""
	if tag, rest, ofUser := cutTag(old); ofUser && s.listKey(tag) == keys.list {
		before = rest
	}
	refuse, most := 0, t.MaxSessions-1
	if t.RefuseLogin {
		refuse = 1
	}
	if s.isOf(old, r.User) { // there will not be more than there are
		most = -1
	}
	x.Script = loginScript
	x.Args = append(x.Args, t.left(r, now).Milliseconds(), before, most, refuse, newEpoch())
}

// isOf reports whether the id is that of a session of the user.
func (s *Engine) isOf(id, user string) bool {
	tag, _, ofUser := cutTag(id)
	return ofUser && slices.ContainsFunc(s.tags(user), func(its [tagBytes]byte) bool {
		return base64.RawURLEncoding.EncodeToString(its[:]) == tag
	})
}

// What login.lua answers.
const (
	loginTooMany = 2
	loginEnded   = 3
)

// login runs a login once, and returns what of the user's list is too many then. Once it is stored,
// to run it again only counts.
func (s *Engine) login(ctx context.Context, x scripting.RoundTrip, within time.Duration, arrived time.Time) (surplus []string, err error) {
	reply, err := s.inTime(ctx, x, within, arrived)
	if err != nil {
		return nil, err
	}
	switch n, refused := reply.Int(); {
	case refused && n == loginTooMany:
		return nil, ErrTooManySessions
	case refused && n == loginEnded:
		return nil, ErrGone
	case refused:
		return nil, errTaken
	}
	for i := 1; i < reply.Len(); i++ {
		member, ok := reply.TextAt(i)
		if !ok {
			return nil, lease.Unexpected(reply)
		}
		surplus = append(surplus, member)
	}
	return surplus, nil
}

// runLogin runs the round trip that prepareLogin has made, and ends the sessions that are too many then.
// What has timed out and is still on the list does not count: the user could not log out there. So it
// is taken off before a login is refused, or another session ended, and the script counts anew: also
// where nothing was found, since another login may have taken it off since the script counted first.
// Logins that came after this one do the same, so their sessions are none of its business: it ends only
// what it has counted both times.
func (s *Engine) runLogin(ctx context.Context, x scripting.RoundTrip, id string, within time.Duration, arrived time.Time) error {
	surplus, err := s.login(ctx, x, within, arrived)
	if len(surplus) == 0 && !errors.Is(err, ErrTooManySessions) {
		return err
	}
	tag, _, _ := cutTag(id)
	if err := s.prune(ctx, tag); err != nil {
		return err
	}
	still, err := s.login(ctx, x, within, arrived)
	switch {
	case len(surplus) > 0 && errors.Is(err, errTaken):
		return nil // it was stored, and has been ended since: by a login that came later, say
	case err != nil:
		return err
	}
	for _, member := range surplus {
		if !slices.Contains(still, member) {
			continue
		}
		err := s.endSession(ctx, tag+"."+member)
		if err != nil && !errors.Is(err, ErrGone) && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrCorrupt) {
			return err
		}
	}
	return nil
}

// prune takes those sessions off a list that have timed out. No record comes back when it is gone, since
// a record and its place on the list are written by one script, and an id is used once.
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
