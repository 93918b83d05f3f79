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

// ListUser shows only what stands at the beginning of a record, so it reads listedBytes of each record,
// whatever its size. One round trip reads only shownAtOnce sessions, some 10 KB, since the round trips of
// other requests wait behind it, on its connection and in Redis. Sessions that have begun or got a new ID
// meanwhile are looked up in up to listRounds more rounds. A session can be left out only if it gets a new ID
// during each of these.
//
// The longest beginning of a record, with all timeouts and a sealed device of MaxDevice, has 401 bytes.
const (
	listedBytes = 410
	shownAtOnce = 25
	listRounds  = 100
)

// ListUser returns the sessions of a user, newest first, and does not extend them. It makes one round trip
// for the list and one for each 25 sessions, with less than a kilobyte for a session, whatever the size of
// its record. A session whose record cannot be read is listed with the fields that are still known. The error
// wraps [ErrUnavailable].
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

// listTag reads the list once more behind the last records. By then a Renew may have given a session another
// ID. That ID is looked up, too, so that no session is left out that is alive all the time. A session that is
// no longer on the list was ended.
//
// All commands are plain, so that a program with only the right to read can list. If replies change places,
// the result may lack sessions, or show the expiry of others. It never shows the session of another user: a
// record is bound to its key, and the IDs on another user's list lead to no key of this user.
func (s *Engine) listTag(ctx context.Context, tag, user string, t Terms) (all []Listed, _ error) {
	list, mark := s.listKey(tag), s.markKey(tag)
	again := []transport.Command{{"GET", mark}, {"ZRANGE", list, 0, -1}}
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

// members returns the IDs on the list, from the replies to GET of the mark and ZRANGE of the list. It leaves out
// sessions that give way to another one on the list, and that nobody has come back with: a user sees each login
// once.
func (s *Engine) members(ctx context.Context, tag string, replies []any) (ids []string, _ error) {
	text, _ := scripting.Text(replies[0])
	mark := string(text)
	members, ok := replies[1].([]any)
	if refusal, refused := replies[1].(error); refused && !strings.HasPrefix(refusal.Error(), "WRONGTYPE ") {
		return nil, scripting.Refused(refusal)
	}
	if !ok {
		return nil, fmt.Errorf("%w: the key of a user's list holds another Redis type", ErrCorrupt)
	}
	if (mark != "" && !strings.HasPrefix(mark, nobody)) != (len(members) > 0) {
		// Either the mark or the list is lost, so that all sessions have ended. Or a login came in between,
		// or the last session was ended. Only a script can tell.
		reply, err := s.runner.Run(ctx, userLostScript, scripting.Keys{s.markKey(tag), s.listKey(tag)})
		if n, _ := reply.Int(); err != nil || n != 0 {
			return nil, err
		}
	}
	var all []string
	for _, m := range members {
		if own, ok := scripting.Text(m); ok {
			all = append(all, string(own))
		}
	}
	for _, own := range Remaining(mark, all) {
		ids = append(ids, tag+"."+own)
	}
	return ids, nil
}

// Remaining returns the members of a user's list without those that give way to another member, by the user's mark.
func Remaining(mark string, members []string) (remaining []string) {
	stands := make(map[string]bool) // by session: it is on the list, or gives way to one that is
	for _, own := range members {
		stands[own] = true
	}
	gives := make(map[string]bool)
	for _, e := range entries(mark) {
		gives[e.own] = stands[e.by]
		stands[e.own] = stands[e.own] || stands[e.by]
	}
	for _, own := range members {
		if !gives[own] {
			remaining = append(remaining, own)
		}
	}
	return remaining
}

// appendListed appends the sessions that still have records. It returns all replies; the last ones are those
// to more.
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

// listed returns what ListUser shows of a session. Its record begins with text, and expires after left.
func (s *Engine) listed(id, user string, text []byte, left time.Duration, now time.Time, t Terms) (l Listed, shown bool) {
	if left <= 0 || strings.HasPrefix(string(text[min(len(text), 28):]), `","gone"`) {
		return l, false // the session has expired, or was ended just now
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

// look sends commands that only read. If the connection breaks, it sends them up to three times, since the
// second connection may be about to break as well. All tries together take no longer than one round trip may.
func (s *Engine) look(ctx context.Context, slot string, commands ...transport.Command) ([]any, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	for try := 1; ; try++ {
		replies, err := s.runner.RoundTripNumbered(ctx, slot, slices.Clone(commands)...)
		if try == 3 || !scripting.Broken(err) || ctx.Err() != nil {
			return replies, err
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
