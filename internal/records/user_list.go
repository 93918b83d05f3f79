package records

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// Listed describes one of a user's sessions.
type Listed struct {
	ID, User, Device string
	Created, Expires time.Time
	Seen             time.Time // see Terms.Seen
}

// A list shows what stands at the beginning of a record, so it asks for that many bytes, however much a
// session holds. It asks for so few sessions in one round trip, some 10 KB, since others' round trips wait
// behind it, on its connection and in Redis. listRounds is how often it asks for those that have begun, or
// got a new id, meanwhile. A session can be left out only if that happens during each of so many round
// trips in a row.
const (
	listedBytes = 410
	shownAtOnce = 25
	listRounds  = 100
)

// ListUser returns the sessions of a user, newest first. It looks at them without using them: one
// round trip for the list, and then one for each 25 sessions, of less than a kilobyte a session, whatever
// they hold. The error wraps [ErrUnavailable]. A record that cannot be read is listed without what it does
// not say.
func (s *Engine) ListUser(ctx context.Context, user string, t Terms) ([]Listed, error) {
	if err := cmp.Or(s.usable(), checkUser(user)); err != nil {
		return nil, err
	}
	t = t.withDefaults()
	var all []Listed
	for _, tag := range s.tags(user) {
		found, err := s.listTag(ctx, base64.RawURLEncoding.EncodeToString(tag[:]), user, t)
		if err != nil {
			return nil, failed("listing", "the sessions of a user", err)
		}
		all = append(all, found...)
	}
	slices.SortStableFunc(all, func(a, b Listed) int { return b.Created.Compare(a.Created) })
	return all, nil
}

// listTag asks for the list once more behind the last records. By then a Renew may have given a session
// another id, which is looked up, too, so that no session that is alive all the time is left out; and
// what is not on the list any more was ended.
//
// All commands are plain, so that who may only look at Redis can list. Where replies change places a list may
// lack sessions, or say when others end, but shows nobody else's: a record is bound to its key, and what is
// on another user's list is at no key of this one's.
func (s *Engine) listTag(ctx context.Context, tag, user string, t Terms) (all []Listed, _ error) {
	list, mark := s.listKey(tag), s.markKey(tag)
	again := []transport.Command{{"GETRANGE", mark, 0, len(nobody) - 1}, {"ZRANGE", list, 0, -1}}
	replies, err := s.look(ctx, list, again...)
	seen, current := make(map[string]bool), make(map[string]bool)
	for round := 0; err == nil; round++ {
		var ids []string
		ids, err = s.members(ctx, tag, replies[len(replies)-2:])
		if err != nil {
			break
		}
		clear(current)
		for _, id := range ids {
			current[id] = true
		}
		ids = slices.DeleteFunc(ids, func(id string) bool { return seen[id] })
		if len(ids) == 0 || round == listRounds {
			break
		}
		for len(ids) > 0 && err == nil {
			some := ids[:min(len(ids), shownAtOnce)]
			for _, id := range some {
				seen[id] = true
			}
			var last []transport.Command
			ids = ids[len(some):]
			if len(ids) == 0 {
				last = again
			}
			all, replies, err = s.appendListed(ctx, all, some, user, t, last...)
		}
	}
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(l Listed) bool { return !current[l.ID] }), nil
}

// members returns the ids that are on the list, from the replies to GETRANGE of the mark and ZRANGE.
func (s *Engine) members(ctx context.Context, tag string, replies []any) (ids []string, _ error) {
	epoch, _ := scripting.Text(replies[0])
	members, ok := replies[1].([]any)
	if !ok {
		return nil, fmt.Errorf("%w: the list of a user's sessions is something else", ErrCorrupt)
	}
	if (len(epoch) > 0 && string(epoch) != nobody) != (len(members) > 0) {
		// One of them is lost, so that all are over. Or a login came in between, or the last session
		// was ended: only a script can say.
		reply, err := s.runner.Run(ctx, lostScript, scripting.Keys{s.markKey(tag), s.listKey(tag)})
		if n, _ := reply.Int(); err != nil || n != 0 {
			return nil, err
		}
	}
	for _, m := range members {
		if text, ok := scripting.Text(m); ok {
			ids = append(ids, tag+"."+string(text))
		}
	}
	return ids, nil
}

// appendListed appends those of the sessions whose records are there. It returns the replies, of which
// the last are those to more commands.
func (s *Engine) appendListed(
	ctx context.Context, all []Listed, ids []string, user string, t Terms, more ...transport.Command,
) ([]Listed, []any, error) {
	commands := make([]transport.Command, 0, 2*len(ids)+3)
	for _, id := range ids {
		key := s.recordKey(id)
		commands = append(commands, transport.Command{"PTTL", key}, transport.Command{"GETRANGE", key, 0, listedBytes - 1})
	}
	replies, err := s.look(ctx, s.recordKey(ids[0]), append(commands, more...)...)
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	for i, id := range ids {
		left, _ := replies[2*i].(int64)
		begins, _ := scripting.Text(replies[2*i+1])
		if l, shown := s.listed(id, user, begins, time.Duration(left)*time.Millisecond, now, t); shown {
			all = append(all, l)
		}
	}
	return all, replies, nil
}

// listed returns what the list shows of a session whose record begins with text, and lives for left.
func (s *Engine) listed(id, user string, text []byte, left time.Duration, now time.Time, t Terms) (l Listed, shown bool) {
	if left <= 0 || strings.HasPrefix(string(text[min(len(text), 28):]), `","gone"`) {
		return l, false // it has timed out, or was ended just now
	}
	l = Listed{ID: id, User: user, Expires: now.Add(left)}
	r, _, _, err := parseBeginning(text, s.form(id))
	if err != nil {
		return l, true
	}
	l.Device, l.Created, l.Expires = r.Device, r.Created, earlier(l.Expires, now.Add(t.left(&r, now)))
	l.Seen = t.Seen(r, now, l.Expires)
	return l, !t.expired(&r, now)
}

// look sends commands that only read, up to three times if the connection breaks: the second one may
// have been about to.
func (s *Engine) look(ctx context.Context, slot string, commands ...transport.Command) ([]any, error) {
	replies, err := s.runner.RoundTripNumbered(ctx, slot, slices.Clone(commands)...)
	for range 2 {
		if !scripting.Broken(err) {
			break
		}
		replies, err = s.runner.RoundTripNumbered(ctx, slot, slices.Clone(commands)...)
	}
	return replies, err
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
