package users

import (
	"slices"
	"strings"
)

// mostUnclaimed is the number of unclaimed sessions that a mark has room for.
const mostUnclaimed = 16

// A chain has the sessions that end when a session is claimed, the newest first, as a process has read them. Each
// is its number plus one; 0 is none.
type chain [maxCalls - 1]uint8

// chainOf returns the chain of a session by a mark, as unclaimedBy in internal/records/unclaimed.go does. unclaimed
// is false if the mark has no entry for the session.
func chainOf(text string, session uint8) (c chain, unclaimed bool) {
	var m readMark
	m.read(text)
	if !m.entries.has(session) {
		return c, false
	}
	at := 0
	for old := m.older[session]; old != none && at < len(c); old = m.older[old] {
		c[at] = old + 1
		at++
	}
	return c, true
}

// A readMark is what a user's mark says of sessions.
type readMark struct {
	named   sessions        // sessions of earlier epochs that are alive
	entries sessions        // sessions with an entry
	older   [maxCalls]uint8 // the session that an entry names, or none
	order   []uint8         // the sessions with an entry, the oldest first
}

// read reads a mark. bad says what is wrong with it.
func (m *readMark) read(text string) (bad string) {
	m.older = [maxCalls]uint8{none, none, none, none}
	text, _, _ = strings.Cut(text, ",")
	for _, word := range strings.Fields(text[min(len(text), len(nobody)):]) {
		own, old, isEntry := strings.Cut(word, ">")
		if !isEntry {
			m.named |= readMember(word)
			continue
		}
		id := sessionOf(strings.TrimPrefix(own, "~"))
		switch {
		case id == none:
			return "the mark has an entry for no session: " + word
		case m.entries.has(id):
			return "the mark has two entries for " + name(id)
		}
		m.entries, m.older[id] = m.entries|set(id), sessionOf(old)
		if older := m.older[id]; older != none && !slices.Contains(m.order, older) {
			return "the mark has no entry for what " + name(id) + " replaces, or a newer one"
		}
		m.order = append(m.order, id)
	}
	return ""
}

// replacedBy returns the sessions that the entry of a session names, and those that they name in turn.
func (m *readMark) replacedBy(session uint8) (all sessions) {
	for old := m.older[session]; old != none; old = m.older[old] {
		all |= set(old)
	}
	return all
}

// claimed returns the live sessions of the user that are not unclaimed.
func (v *view) claimed() sessions { return v.listed &^ v.entries }

// unclaimed returns the live sessions of the user that nobody has come back with.
func (v *view) unclaimed() sessions { return v.listed & v.entries }

// root returns the unclaimed session that replaces a session, and is not replaced itself; or none.
func (v *view) root(session uint8) uint8 {
	for j := range uint8(maxCalls) {
		if v.roots().has(j) && (j == session || v.replacedBy(j).has(session)) {
			return j
		}
	}
	return none
}

// roots returns the unclaimed sessions that no other one replaces.
func (v *view) roots() sessions {
	all := v.unclaimed()
	for j := range uint8(maxCalls) {
		if v.unclaimed().has(j) {
			all &^= v.replacedBy(j)
		}
	}
	return all
}
