package records

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// End ends a session at once, even if a request holds it. The holder's commit is refused from now on, and it is told at
// the next renewal of its lease, within a third of Options.Lease; [Engine.Alive] tells earlier. The error wraps
// [ErrNotFound] if there is no such session, [ErrGone] if it was ended less than a minute ago, [ErrCorrupt]
// if the stored value is not a session, which is left as it is, or [ErrUnavailable].
func (s *Engine) End(ctx context.Context, id string) error {
	return failed("ending", id, s.endSession(ctx, id))
}

// EndPresent is like End. But if the session has got a new ID less than a minute ago, EndPresent ends it under the ID
// that it has now, unless it is another user's by then: whoever ends a device of a user has its ID from a list, and a
// Renew may have crossed. It returns that ID. t needs a Lifetime. All its round trips take no longer than one may.
func (s *Engine) EndPresent(ctx context.Context, id string, t Terms) (ended string, _ error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	for {
		err := s.End(ctx, id)
		if !errors.Is(err, ErrGone) {
			return id, err
		}
		now, gone := s.Alive(ctx, id, t)
		switch {
		case errors.Is(gone, ErrGone), errors.Is(gone, ErrNotFound), gone == nil && now == id:
			return id, err
		case gone != nil: // nobody knows whether it goes on
			return id, gone
		}
		id = now // each turn needs another Renew, so there are few
	}
}

func (s *Engine) endSession(ctx context.Context, id string) error {
	if err := s.usable(); err != nil {
		return err
	}
	keys := s.recordKeys(id)
	tombstone := formatTombstone(s.newRevision(id), time.Now(), nil)
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

// EndUser ends all sessions of a user except those with the IDs in except, at once and in one round trip,
// even if requests hold them; see [Engine.End]. It returns the IDs that were on the list. Some of these
// sessions may have expired before. After a broken connection, the IDs may be fewer than were ended. It is no
// error if the user has no sessions. If the error wraps [ErrUnavailable], the sessions may have been ended
// nevertheless, and EndUser can be called again. Sessions that begin after EndUser has returned are not
// ended, even if the command is done late or twice. But after an error it may still be done within
// Options.Timeout, or within twice that if Redis's clock was set back.
//
// While keys of Encryption are changed, a user has several lists, and EndUser makes several round trips.
// Until it returns, some sessions have ended and others have not. If two processes with different keys renew
// sessions in opposite directions during the call, one of these may survive.
func (s *Engine) EndUser(ctx context.Context, user string, except ...string) (ended []string, err error) {
	if err := cmp.Or(s.usable(), checkUser(user)); err != nil {
		return nil, err
	}
	// A Renew moves a session to the list of the newest key. Processes may differ in which key is the newest.
	// So the lists are ended in order and then in reverse: a Renew that is under way escapes in neither
	// direction.
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
	// A request that arrives in this process from now on has arrived after the script was done.
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

// tidiedAtOnce is how many sessions of a user one round trip tidies, or asks for the time to live of.
const tidiedAtOnce = 200

// tidy makes the records of ended sessions expire in a minute, in the background. Until then such a record
// serves as a tombstone. Without tidy it would do so until it expires by its own timeout.
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

// checkUser returns an error if user cannot be the name of a user.
func checkUser(user string) error {
	if user == "" || len(user) > MaxUser {
		return errUser
	}
	return nil
}
