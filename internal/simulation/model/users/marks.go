package users

import (
	"slices"
	"strings"
)

// mostUnclaimed is the number of unclaimed sessions that a mark has room for.
const mostUnclaimed = 16

// A readMark is what a user's mark says about sessions.
type readMark struct {
	named   sessions        // sessions of earlier epochs that are alive
	entries sessions        // sessions with an entry
	newer   [maxCalls]uint8 // the session that an entry names, or none
	order   []uint8         // the sessions with an entry, the oldest first
}

// read reads a mark. bad says what is wrong with it.
func (m *readMark) read(text string) (bad string) {
	m.newer = [maxCalls]uint8{none, none, none, none}
	text, _, _ = strings.Cut(text, ",")
	for _, word := range strings.Fields(text[min(len(text), len(nobody)):]) {
		own, by, isEntry := strings.Cut(word, ">")
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
		m.entries, m.newer[id] = m.entries|set(id), sessionOf(by)
		m.order = append(m.order, id)
	}
	for at, id := range m.order {
		if newer := m.newer[id]; newer != none && !slices.Contains(m.order[at+1:], newer) {
			return "the mark has no entry for what " + name(id) + " gives way to, or an older one"
		}
	}
	return ""
}

// below returns the sessions from which entries lead to a session, as belowOf in internal/records/unclaimed.go does.
func (m *readMark) below(session uint8) (all sessions) {
	for _, id := range slices.Backward(m.order) {
		if newer := m.newer[id]; newer == session && session != none || all.has(newer) {
			all |= set(id)
		}
	}
	return all
}

// claimed returns the live sessions of the user that are not unclaimed.
func (v *view) claimed() sessions { return v.listed &^ v.entries }

// unclaimed returns the live sessions of the user that nobody has come back with.
func (v *view) unclaimed() sessions { return v.listed & v.entries }

// root returns the unclaimed session to which an unclaimed one gives way in the end, or that one itself. It
// returns none for any other session, since an ended session gives way to nothing.
func (v *view) root(session uint8) uint8 {
	if !v.unclaimed().has(session) {
		return none
	}
	for j := range uint8(maxCalls) {
		if v.roots().has(j) && (j == session || v.below(j).has(session)) {
			return j
		}
	}
	return none
}

// roots returns the unclaimed sessions that give way to no other session.
func (v *view) roots() sessions {
	all := v.unclaimed()
	for j := range uint8(maxCalls) {
		if v.unclaimed().has(j) {
			all &^= v.below(j)
		}
	}
	return all
}
