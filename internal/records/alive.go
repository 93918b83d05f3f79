package records

import (
	"context"
	"errors"
	"time"

	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// # Is the session still alive?
//
// A request may go on for hours after its session was saved: a stream, for example. [Engine.Alive] tells whether the
// session has ended meanwhile. It is called once a second for each such request, so nearly always two plain commands
// must do, whatever the size of the record:
//
//	GETRANGE record 0 109
//	GET mark               of a user's session
//
// The two are sent in one write, but are not one step. They cannot make an ended session look alive: the first has
// the record's bond, which belongs to its key, and the record's epoch, and no foreign mark has that. They can make a
// session that is alive look dead: if a replica replies that has not received the record, if a login comes in between,
// or if the reply is that of another call. So nobody is taken for dead by plain commands. load.lua asks again, and a
// replica refuses to say that there is no record.
//
// load.lua sends no record back, only its size: see probe.

// longestHead is the size of the longest head of a record. All that decides about the end of a session is in its head.
const longestHead = 110

// maxMoves is how many new IDs [Engine.Alive] follows in one call. The next call goes on from there.
const maxMoves = 4

// Alive returns nil if the session with this ID is alive. It extends no timeout. The error wraps [ErrNotFound] or
// [ErrGone] if the session has ended: only a master says so. Any other error, such as [ErrUnavailable], means that
// nothing is known.
//
// If the session has got a new ID less than a minute ago, now is the new ID, and the result is about that. A session
// that now belongs to another user is another session: for the old one the error is ErrGone. t needs a Lifetime.
func (s *Engine) Alive(ctx context.Context, id string, t Terms) (now string, err error) {
	t.TTL, t.Quiet = 0, true
	for range maxMoves {
		err := s.alive(ctx, id, t)
		moved, isMoved := errors.AsType[*Moved](err)
		if !isMoved {
			return id, failed("asking for", id, err)
		}
		if err := s.goesOnAs(ctx, id, moved.To, t); err != nil {
			return id, failed("following", id, err)
		}
		id = moved.To
	}
	return id, nil // as far as is known
}

// alive is Alive for one ID. A new ID is the error *Moved.
func (s *Engine) alive(ctx context.Context, id string, t Terms) error {
	if err := s.usable(); err != nil {
		return err
	}
	begun := time.Now()
	looksAlive, err := s.looksAlive(ctx, id, t, begun)
	if looksAlive || err != nil && !scripting.Broken(err) {
		return err
	}
	return s.probe(ctx, id, t, begun)
}

// looksAlive asks by plain commands.
func (s *Engine) looksAlive(ctx context.Context, id string, t Terms, now time.Time) (bool, error) {
	key := s.recordKey(id)
	keys := sessionKeys{record: key}
	words := []any{"GETRANGE", keys.record, 0, longestHead - 1, "GET", nil} // in one allocation
	commands := append(make([]transport.Command, 0, 2), words[:4:4])
	if tag, _, ofUser := cutTag(id); ofUser {
		keys.mark = s.markKey(tag)
		words[5] = keys.mark
		commands = append(commands, words[4:])
	}
	replies, err := s.runner.RoundTripPlain(ctx, key, commands...)
	if err != nil {
		return false, err
	}
	text, _ := scripting.Text(replies[0])
	record, _, _, err := parseHead(text, s.bond(id))
	if err != nil || t.expired(&record, now) {
		return false, nil
	}
	if keys.ofUser() {
		mark, _ := scripting.Text(replies[1])
		return alive(string(mark), keys, record.epoch), nil
	}
	return true, nil
}

// Touch extends the idle timeout of a session as [Engine.Load] does, in one round trip, but reads nothing. It needs no
// lock. The error wraps [ErrNotFound], [ErrGone] or [ErrUnavailable].
func (s *Engine) Touch(ctx context.Context, id string, t Terms) error {
	err := s.usable()
	if err == nil {
		err = s.probe(ctx, id, t, time.Now())
	}
	return failed("touching", id, err)
}

// probe is load.lua without the record: it returns no error if there is a record, whatever its content.
func (s *Engine) probe(ctx context.Context, id string, t Terms, begun time.Time) error {
	t.MaxBytes = 1 // no record is that small: load.lua returns the size of a record that is too large, and not the record
	_, _, err := s.loadByScript(ctx, s.recordKeys(id), s.box(id), t, 0, begun)
	if unusable(err) {
		return nil
	}
	return err
}

// goesOnAs returns nil if a session with this ID goes on under the ID to, to which it has moved. It does if it was a
// guest's, since a guest who logs in has become the user. A user's session goes on if it is still that user's. The two
// IDs then have the same tag, unless the keys of Encryption are being changed: then the user in the record decides.
func (s *Engine) goesOnAs(ctx context.Context, id, to string, t Terms) error {
	tag, _, ofUser := cutTag(id)
	toTag, _, toUser := cutTag(to)
	switch {
	case to == "": // only a process with other keys can know it
		return ErrGone
	case !ofUser, toUser && toTag == tag:
		return nil
	case !toUser || s.ring == nil: // a user has one tag
		return ErrGone
	}
	record, err := s.Load(ctx, to, t)
	if unusable(err) || err == nil && !s.isOf(id, record.User) {
		return ErrGone
	}
	return err
}
