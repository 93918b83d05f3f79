package records

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// End ends a session, whatever holds it, at once: a holder's commit is refused from now on, and its
// context ends when its lease is renewed next, within a third of Options.Lease. The error wraps
// [ErrNotFound] if there is no such session, [ErrGone] if it was ended less than a minute ago,
// [ErrCorrupt] if what is stored is no session, which is left as it is, or [ErrUnavailable].
func (s *Engine) End(ctx context.Context, id string) error {
	return failed("ending", id, s.endSession(ctx, id))
}

func (s *Engine) endSession(ctx context.Context, id string) error {
	if err := s.usable(); err != nil {
		return err
	}
	keys := s.recordKeys(id)
	tombstone := formatTombstone(s.newRevision(id), time.Now())
	reply, err := s.runner.Run(ctx, endScript, keys.withList(), tombstone, tombstoneTime.Milliseconds())
	switch n, ok := reply.Int(); {
	case err != nil:
		return err
	case !ok:
		return lease.Unexpected(reply)
	case n == 0:
		return ErrNotFound
	case n == 2:
		return ErrGone
	case n == 3:
		return fmt.Errorf("%w: it was left as it is", ErrCorrupt)
	}
	return nil
}

// EndUser ends all sessions of a user but those with the ids except, at once and in one round trip,
// whatever holds them; see [Engine.End]. It returns the ids of those that were on the list, of which
// some may have timed out before; after a broken connection they may be fewer than were ended. A user
// who has none is no error. The error wraps [ErrUnavailable]: they may have been ended all the same,
// and to call it again does no harm. Sessions that begin afterwards are not ended, also if the
// command is done late or twice; but after an error it may still be done within Options.Timeout.
//
// While keys of Encryption are changed, a user has several lists, and it takes several round trips.
// Until it returns, some sessions are over and others are not. If two processes with different keys renew
// sessions in opposite directions during the call, one of these may survive.
func (s *Engine) EndUser(ctx context.Context, user string, except ...string) (ended []string, err error) {
	if err := cmp.Or(s.usable(), checkUser(user)); err != nil {
		return nil, err
	}
	// A Renew moves a session to the list of the newest key, which is not the same in all processes. So
	// the lists are ended there and back: one Renew that is under way escapes in neither direction.
	tags := s.tags(user)
	back := slices.Clone(tags[:len(tags)-1])
	slices.Reverse(back)
	for _, tag := range append(tags, back...) {
		var some []string
		some, err = s.endTag(ctx, base64.RawURLEncoding.EncodeToString(tag[:]), except)
		ended = append(ended, some...)
		if err != nil {
			break
		}
	}
	return ended, failed("ending", "the sessions of a user", err)
}

func (s *Engine) endTag(ctx context.Context, tag string, except []string) (ended []string, _ error) {
	args := []any{s.newRevision(tag)}
	for _, id := range except {
		if itsTag, rest, ofUser := cutTag(id); ofUser && itsTag == tag {
			args = append(args, rest)
		}
	}
	keys := scripting.Keys{s.markKey(tag), s.listKey(tag)}
	reply, err := s.inTime(ctx, scripting.RoundTrip{Script: endAllScript, Keys: keys, Args: args}, s.within())
	if err != nil {
		return nil, err
	}
	// A request that arrives from now on in this process did so after Redis had done this.
	now, _ := reply.IntAt(0)
	s.clock.learn(now, time.Now())
	for i := 1; i < reply.Len(); i++ {
		member, ok := reply.TextAt(i)
		if !ok {
			return nil, lease.Unexpected(reply)
		}
		ended = append(ended, tag+"."+member)
	}
	s.tidy(ended)
	return ended, nil
}

// tidiedAtOnce is how many sessions of a user one round trip tidies, or asks for their time to live.
const tidiedAtOnce = 200

// tidy lets the records of sessions that are over end in a minute, in the background. Until
// then they say that the session was ended, like a tombstone; without it they would do so until
// they time out.
func (s *Engine) tidy(ids []string) {
	if len(ids) == 0 {
		return
	}
	s.lines.Sweeper.Sweep(&s.locking, false, func(ctx context.Context) bool {
		for some := range slices.Chunk(ids, tidiedAtOnce) {
			commands := make([]transport.Command, len(some))
			for i, id := range some {
				commands[i] = transport.Command{"PEXPIRE", s.recordKey(id), tombstoneTime.Milliseconds(), "LT"}
			}
			if _, err := s.runner.RoundTripPlain(ctx, s.recordKey(some[0]), commands...); err != nil {
				return false
			}
		}
		return true
	})
}

// checkUser returns an error for what is no name of a user.
func checkUser(user string) error {
	if user == "" || len(user) > MaxUser {
		return errUser
	}
	return nil
}
