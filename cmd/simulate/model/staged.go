package model

// A commit with a large record, as in store/staged.go: a SET of the record at a key of its own, and
// behind it, in the same write, the script that renames it.

// stage returns the SET that is to be executed before the commit of an exchange, or 0.
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

// stages are the steps of that SET.
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
