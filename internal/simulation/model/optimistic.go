package model

// A request that writes without the lock, as in internal/records/optimistic.go and
// middleware/optimistic.go. It reads the record when it comes. Its write replaces exactly that record, if
// there is neither a holder nor a place in the queue. If the write is refused, the request asks for the
// lock. If it then finds the record that it has read, its changes are still right; otherwise it runs
// again.

// ownStamp is the stamp of what r writes without the lock. It differs from all tokens of r.
func ownStamp(r uint8) token { return tokenOf(r, spares-1) }

// loads makes r read the record, and send its write.
func (n *step) loads(r uint8) {
	q, v := &n.requests[r], n.view()
	if q.saw = v.chain; v.gone {
		n.tell(r, goneAlready)
		return
	}
	q.phase, q.repeated = saving, false
	q.call = n.m.server.id(call{kind: save, process: home(r), base: v.stamp, form: data, stamp: ownStamp(r),
		chain: v.chain.add(r), on: v.chain, carries: 1 << r})
	n.says("%s sends: %v", name(r), n.m.server.calls[q.call])
}

// saves has the steps of the script that is under way for r.
func (m *model) saves(s *state, r uint8) {
	q := &s.requests[r]
	m.fork(s, true, func(n *step) { n.saved(r, n.execute(q.call)) })
	if s.used.doubled < m.bounds.Doubled && m.more(s) {
		m.fork(s, false, func(n *step) {
			n.used.doubled++
			n.maybe |= 1 << r
			n.says("the network doubles the next one")
			n.comesLate(q.call)
			n.saved(r, n.execute(q.call))
		})
	}
	if s.used.broken >= m.bounds.Broken || !m.more(s) {
		return
	}
	for _, executed := range []bool{true, false} {
		if !q.repeated {
			m.fork(s, false, func(n *step) { n.breaksDown(q.call, executed); n.savesAgain(r) })
		}
		m.fork(s, false, func(n *step) { n.breaksDown(q.call, executed); n.tell(r, unavailable) })
	}
}

func (n *step) savesAgain(r uint8) {
	q := &n.requests[r]
	c := n.m.server.calls[q.call]
	c.again = true
	q.call, q.repeated = n.m.server.id(c), true
	n.says("it is sent again")
}

// saved handles the reply to the script.
func (n *step) saved(r uint8, a reply) {
	q := &n.requests[r]
	c := n.m.server.calls[q.call]
	switch {
	case !a.refused():
		n.tell(r, answered)
		return
	case n.view().stamp == c.stamp:
		n.breaks("a write that was done is refused when it is repeated")
	case a.code == replyLostAgain:
		n.tell(r, lostAgain)
		return
	}
	q.phase, q.call = inLine, 0
	n.says("%s comes for the lock", name(r))
	n.advance(home(r))
}

// isOwn reports whether the newest record of t is the one that its holder has written without the lock: a
// copy of that command was executed.
func (t *tenure) isOwn(m *model) bool {
	if m.switches.ForgetOwn || m.work[t.holder] != 'o' || t.base != ownStamp(t.holder) || t.stamp != 0 {
		return false
	}
	return t.call == 0 || m.server.calls[t.call].form == nothing
}
