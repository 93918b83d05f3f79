package records

import (
	"context"
	"slices"
	"strings"

	"github.com/a2139e8d/latchkey/internal/lease"
)

// # Unclaimed sessions
//
// The response to a login may be lost, or a second click may make the browser drop it. Then the session is on the
// user's list, but nobody has its cookie. So a user's session is unclaimed until a request comes with its ID for the
// first time. An unclaimed session gives way
//
//   - to a login of the same user that comes with the moved ID from which the session was made: see [Login];
//   - to any login of its user that MaxSessions would otherwise refuse, or for which it would end another session.
//
// A session that gives way does not end at once: of two responses that cross, the browser may keep the cookie of the
// older login. It ends when the newer session is claimed. If the older session is claimed first, both live, and the newer
// one is still unclaimed. The older session never ends the newer.
//
// A session gives way to one other, which is newer. Several may give way to the same one. So the unclaimed sessions form
// trees, and a claim ends what is below its session. It changes nothing above: what the session gives way to stays
// unclaimed. If a session in the middle ends otherwise, what gave way to it gives way to the one above.
//
// The user's mark has an entry for each unclaimed session (unclaimed.lua). Every request of a user's session reads
// the mark anyway. So it costs nothing to see that a session was claimed, and a claim costs one round trip, once
// (claim.lua). The mark has at most sixteen entries: a session whose entry is dropped counts as claimed. So does a
// session that EndUser spares.
//
// Two devices that log in at the same time under RefuseLogin have one unclaimed session each, and the later one wins.

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

// A below has the sessions below an unclaimed one, which end when that is claimed: the newest first, without tag.
type below []string

const (
	entryMark = " ~"
	entrySize = ownSize + len(">") + ownSize
)

// An entry of a mark says to which newer session an unclaimed one gives way. If there is none, by has dots.
type entry struct{ own, by string }

// entries returns the entries of a mark, the newest first: what an entry names comes before it.
func entries(mark string) (all []entry) {
	for _, text := range strings.Split(mark, entryMark)[1:] {
		if len(text) >= entrySize {
			all = append(all, entry{text[:ownSize], text[entrySize-ownSize : entrySize]})
		}
	}
	slices.Reverse(all)
	return all
}

// belowOf returns what is below a session by its user's mark, or nil if the session was claimed.
func belowOf(mark, id string) (unclaimed *below) {
	if !strings.Contains(mark, entryMark) { // nearly always
		return nil
	}
	_, own, _ := cutTag(id)
	var all below
	for _, e := range entries(mark) {
		switch {
		case e.own == own:
			unclaimed = &all
		case e.by == own, slices.Contains(all, e.by):
			all = append(all, e.own)
		}
	}
	return unclaimed
}

// Claim notes that somebody has come back with a session, whose record r was read before, and returns the IDs of the
// sessions that gave way to it: they have ended now. The error wraps [ErrGone] if the session itself has ended, or
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
