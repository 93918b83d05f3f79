package store

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// A Listed session is one of a user's.
type Listed struct {
	ID, User, Device string
	Created, Expires time.Time
	Seen             time.Time // see Terms.Seen
}

// listedAtOnce is for how many sessions a list asks in one exchange, and listRounds how often it asks
// for those that have begun meanwhile.
const (
	listedAtOnce = 200
	listRounds   = 4
)

// ListUser returns the sessions of a user, newest first. It looks at them without using them: one
// exchange for the list, and then one for each 200 sessions. The error wraps [ErrUnavailable]. A record that
// cannot be read is listed without what it does not say.
func (s *Store) ListUser(ctx context.Context, user string, t Terms) ([]Listed, error) {
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
func (s *Store) listTag(ctx context.Context, tag, user string, t Terms) (all []Listed, _ error) {
	list, mark := s.listKey(tag), s.markKey(tag)
	again := []transport.Command{{"PTTL", mark}, {"ZRANGE", list, time.Now().UnixMilli(), "+inf", "BYSCORE"}}
	replies, err := s.look(ctx, list, again...)
	seen, current := make(map[string]bool), make(map[string]bool)
	for round := 0; err == nil; round++ {
		var ids []string
		if ids, err = s.listed(ctx, tag, replies[len(replies)-2:]); err != nil {
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
			some := ids[:min(len(ids), listedAtOnce)]
			for _, id := range some {
				seen[id] = true
			}
			var last []transport.Command
			if ids = ids[len(some):]; len(ids) == 0 {
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

// listed returns the ids that are on the list, from the replies to PTTL of the mark and ZRANGE.
func (s *Store) listed(ctx context.Context, tag string, replies []any) (ids []string, _ error) {
	left, _ := replies[0].(int64)
	members, ok := replies[1].([]any)
	if !ok {
		return nil, fmt.Errorf("%w: the list of a user's sessions is something else", ErrCorrupt)
	}
	if (left > 0) != (len(members) > 0) {
		// One of them is lost, so that all are over. Or a login came in between, or the last session
		// was ended: only a script can say.
		reply, err := s.runner.Run(ctx, lostScript, scripting.Keys{s.listKey(tag), s.markKey(tag)})
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
func (s *Store) appendListed(
	ctx context.Context, all []Listed, ids []string, user string, t Terms, more ...transport.Command,
) ([]Listed, []any, error) {
	get, commands := transport.Command{"MGET"}, make([]transport.Command, 0, len(ids)+2)
	for _, id := range ids {
		key := s.recordKey(id)
		commands = append(commands, transport.Command{"PTTL", key})
		get = append(get, key)
	}
	replies, err := s.look(ctx, s.recordKey(ids[0]), append(append(commands, get), more...)...)
	if err != nil {
		return nil, nil, err
	}
	texts, _ := replies[len(ids)].([]any)
	if len(texts) != len(ids) {
		return nil, nil, lease.Unexpected(scripting.Reply{})
	}
	now := time.Now()
	for i, id := range ids {
		left, _ := replies[i].(int64)
		text, found := scripting.Text(texts[i])
		if !found || left <= 0 || strings.HasPrefix(string(text[min(len(text), 28):]), `","gone"`) {
			continue // it has timed out, or was ended just now
		}
		record, err := parse(text, s.form(id))
		l := Listed{ID: id, User: user, Device: record.Device}
		l.Expires = now.Add(time.Duration(left) * time.Millisecond)
		if err == nil {
			if t.expired(&record, now) {
				continue
			}
			l.Created, l.Expires = record.Created, earlier(l.Expires, now.Add(t.left(&record, now)))
			l.Seen = t.Seen(record, now, l.Expires)
		}
		all = append(all, l)
	}
	return all, replies, nil
}

// look sends commands that only read, up to three times if the connection breaks: the second one may
// have been about to.
func (s *Store) look(ctx context.Context, slot string, commands ...transport.Command) ([]any, error) {
	replies, err := s.runner.Numbered(ctx, slot, slices.Clone(commands)...)
	for range 2 {
		if !scripting.Ambiguous(err) || scripting.Unanswered(err) {
			break
		}
		replies, err = s.runner.Numbered(ctx, slot, slices.Clone(commands)...)
	}
	return replies, err
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Seen returns when a session was used last that expires at a time, as far as that shows it: zero for
// one that has an end of its own, and for one that is nearer to the end of its Lifetime than to its
// idle timeout.
func (t Terms) Seen(r Record, now, expires time.Time) time.Time {
	t = t.withDefaults()
	idle := t.idle(&r)
	if r.Own != nil && !r.Own.Until.IsZero() || t.left(&r, now)-expires.Sub(now) < time.Second {
		return time.Time{}
	}
	return earlier(expires.Add(-idle), now)
}
