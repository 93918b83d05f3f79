package model

import "strings"

// A commit with a large record, as in internal/records/staged.go, is a SET of the record at a separate
// key and, behind it in the same write, the script that renames that key.

// stage returns the SET that must be executed before the commit of an exchange, or 0.
func (m *model) stage(s *state, x exchange) callID {
	t := &s.tenures[x.r]
	if x.take || t.call == 0 || t.staged {
		return 0
	}
	c := m.server.calls[t.call]
	if c.staging == unstaged {
		return 0
	}
	return m.server.id(call{kind: stage, process: c.process, form: c.form, stamp: c.stamp, chain: c.chain,
		staging: c.staging, then: t.call})
}

// stages has the steps of that SET.
func (m *model) stages(s *state, id callID, repeated bool, x exchange) {
	stage := func(n *step) {
		n.execute(id)
		n.tenures[x.r].staged = true
	}
	m.fork(s, true, stage)
	if s.used.doubled < m.bounds.Doubled && m.more(s) {
		m.fork(s, false, func(n *step) {
			n.used.doubled++
			n.says("the network doubles the next one")
			alone := n.m.server.calls[id]
			alone.then = 0
			n.comesLate(n.m.server.id(alone))
			stage(n)
		})
	}
	if s.used.broken < m.bounds.Broken && m.more(s) {
		m.breaks(s, id, repeated, x, false)
	}
}

const sharedBit = 1 << 15

func stagedBit(stamp string) uint16 {
	if stamp == "" {
		return sharedBit
	}
	return bit(readToken(stamp))
}

// stagedBit is the bit of the key at which c's record is staged, or 0.
func (c *call) stagedBit() uint16 {
	switch c.staging {
	case apart:
		return bit(c.stamp)
	case shared:
		return sharedBit
	}
	return 0
}

// A tidying is a state of Redis, and the staged records in it that may still be used.
type tidying struct {
	db    dbID
	wants uint16
}

// tidy returns the state in which the other staged records have expired.
func (s *server) tidy(db dbID, wants uint16) dbID {
	if s.views[db].staged&^wants == 0 {
		return db
	}
	key := tidying{db, wants}
	id, ok := s.tidied[key]
	if !ok {
		rest := s.states[db].Clone()
		for _, key := range rest.Keys(now()) {
			stamp, ok := strings.CutPrefix(key, stages)
			if ok && stagedBit(strings.TrimPrefix(stamp, "."))&wants == 0 {
				rest.Delete(key)
			}
		}
		id = s.intern(rest)
		s.tidied[key] = id
	}
	return id
}

// wantsStaged returns the staged records that a commit may still rename. The others are never read, so it
// makes no difference when they expire.
func (n *step) wantsStaged() (mask uint16) {
	add := func(id callID) {
		for ; id != 0; id = n.m.server.calls[id].then {
			if c := &n.m.server.calls[id]; c.kind == commit {
				mask |= c.stagedBit()
			}
		}
	}
	for _, id := range n.state.late {
		add(id)
	}
	for r := range n.tenures {
		add(n.tenures[r].call)
	}
	return mask
}
