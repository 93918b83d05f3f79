package records

import (
	"context"
	"strings"

	"github.com/a2139e8d/latchkey/internal/lease"
)

// # Unclaimed sessions
//
// The response to a login may be lost, or a second click may make the browser drop it. Then the session is on the
// user's list, but nobody has its cookie. So a user's session is unclaimed until a request comes with its id for the
// first time. An unclaimed session gives way
//
//   - to a login of the same user that comes with the moved id from which the session was made: see [WithInstead];
//   - to any login of its user that MaxSessions would otherwise refuse, or for which it would end another session.
//
// It does not end at once: of two responses that cross, the browser may keep the cookie of the older login. It ends
// when the newer session is claimed. If the older one is claimed first, both live. The newer one stays unclaimed
// then, and may give way itself. Only the newer one ends the older.
//
// There is one exception. If one login makes two sessions give way that have nothing to do with each other, their entries
// form a chain. Then a claim of the newer of the two ends the older one, although the login itself was not claimed; and
// the chain behind the newer one is cut, so that what is left of it does not give way any more.
//
// The user's mark has an entry for each unclaimed session (unclaimed.lua). Every request of a user's session reads
// the mark anyway. So it costs nothing to see that a session was claimed, and a claim costs one round trip, once
// (claim.lua). The mark has at most sixteen entries: a session whose entry is dropped counts as claimed. So does a
// session that EndUser spares.
//
// Two devices that log in at the same time under RefuseLogin have one unclaimed session each, and the later one wins.

type insteadKey struct{}

// WithInstead returns a context for [Engine.CreateRecord] and [Hold.Renew] of a login. The new session replaces the
// sessions with these ids that are the same user's, and unclaimed.
func WithInstead(ctx context.Context, ids []string) context.Context {
	return context.WithValue(ctx, insteadKey{}, ids)
}

// instead returns the ids of [WithInstead] that have the tag of keys, without it, for login.lua.
func (s *Engine) instead(ctx context.Context, keys sessionKeys) string {
	ids, _ := ctx.Value(insteadKey{}).([]string)
	var all []string
	for _, id := range ids {
		if tag, rest, ofUser := cutTag(id); ofUser && s.listKey(tag) == keys.list {
			all = append(all, rest)
		}
	}
	return strings.Join(all, " ")
}

// Unclaimed reports whether nobody had come back with the session when its record was read.
func (r Record) Unclaimed() bool { return r.unclaimed != nil }

// Claimed notes that [Engine.Claim] has claimed the session of a hold: the holds of its process that follow need not
// do it again. Not every hold is somebody who has come back, and a claim may fail.
func (h *Hold) Claimed() {
	t := h.tenure
	t.mu.Lock()
	defer t.unlock()
	h.Record.unclaimed, t.record.unclaimed = nil, nil
}

// A replacement is an unclaimed session's: the sessions that end when it is claimed, the newest first, without tag.
type replacement []string

const (
	entryMark     = " ~"
	entrySize     = len(entryMark) + ownSize + len(">") + ownSize
	noSession     = "..........."
	mostUnclaimed = 16 // of a user: login.lua knows this number, too
)

// unclaimedBy returns the replacement of a session by its user's mark, or nil if it was claimed.
func unclaimedBy(mark, id string) *replacement {
	if !strings.Contains(mark, entryMark) { // nearly always
		return nil
	}
	_, own, _ := cutTag(id)
	old, found := replacedBy(mark, own)
	if !found {
		return nil
	}
	all := replacement{}
	for found && old != noSession && len(all) < mostUnclaimed {
		all = append(all, old)
		old, found = replacedBy(mark, old)
	}
	return &all
}

// replacedBy returns what an unclaimed session replaces. found is false if the session was claimed.
func replacedBy(mark, own string) (old string, found bool) {
	at := strings.Index(mark, entryMark+own+">")
	if at < 0 || len(mark) < at+entrySize {
		return "", false
	}
	return mark[at+entrySize-ownSize : at+entrySize], true
}

// Claim notes that somebody has come back with a session, whose record r was read before, and returns the ids of the
// sessions that it has replaced: they have ended now. The error wraps [ErrGone] if the session itself has ended, or
// [ErrUnavailable]: then the session may have been claimed.
func (s *Engine) Claim(ctx context.Context, id string, r Record) (ended []string, err error) {
	if r.unclaimed == nil {
		return nil, nil
	}
	tag, _, _ := cutTag(id)
	keys := s.keys(id)
	all := keys.withList()
	for _, old := range *r.unclaimed {
		all = append(all, s.recordKey(tag+"."+old))
	}
	reply, err := s.runner.Run(ctx, claimScript, all)
	if n, refused := reply.Int(); err == nil && refused && n == 0 {
		err = ErrGone
	}
	for i := 1; err == nil && i < reply.Len(); i++ {
		member, ok := reply.TextAt(i)
		if !ok {
			err = lease.Unexpected(reply)
		}
		ended = append(ended, tag+"."+member)
	}
	return ended, failed("claiming", id, err)
}
