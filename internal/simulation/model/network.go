package model

// This file has the faults of commands and replies.
//
// A reply arrives at once, or is lost. A late reply has the same effect as a client that is slow to act
// on it, and every client here may be slow.

// An exchange is a command with a sender that waits for the reply: request r, which takes the lock, or
// the tenure that r took.
type exchange struct {
	r    uint8
	take bool
}

// exchange has the steps of a command that is under way, and of the command before it in the same write.
func (m *model) exchange(s *state, id callID, repeated bool, x exchange) {
	if first := m.stage(s, x); first != 0 {
		m.stages(s, first, repeated, x)
		return
	}
	m.delivered(s, id, x, false)
	if s.used.doubled < m.bounds.Doubled && m.more(s) {
		m.delivered(s, id, x, true)
	}
	if s.used.broken >= m.bounds.Broken || !m.more(s) {
		return
	}
	m.breaks(s, id, repeated, x, true)
	m.breaks(s, id, repeated, x, false)
}

// breaks is the end of a connection with a command that arrives, or may do so later, and what the client
// does then.
func (m *model) breaks(s *state, id callID, repeated bool, x exchange, arrives bool) {
	if !repeated {
		m.fork(s, false, func(n *step) { n.breaksDown(id, arrives); n.repeat(x) })
	}
	m.fork(s, false, func(n *step) { n.breaksDown(id, arrives); n.givesUp(x, false) })
	if m.unaware(s, x) {
		m.fork(s, false, func(n *step) { n.breaksDown(id, arrives); n.givesUp(x, true) })
	}
}

// more reports whether there may be one more fault.
func (m *model) more(s *state) bool { return s.used.faults() < m.bounds.Faults }

// unaware reports whether the session was handed to a request that may not know it yet.
func (m *model) unaware(s *state, x exchange) bool {
	h := &s.requests[s.tenures[x.r].holder]
	return !x.take && h.phase == holding && h.joined
}

// delivered is the execution of a command, and its reply.
func (m *model) delivered(s *state, id callID, x exchange, twice bool) {
	deliver := func(n *step, unaware bool) {
		if twice {
			n.used.doubled++
			n.maybe |= n.m.server.calls[id].carries
			n.says("the network doubles the next one")
			n.comesLate(id)
		}
		a := n.execute(id)
		if x.take {
			n.takeReplied(x.r, a)
		} else {
			n.committed(x.r, a, unaware)
		}
	}
	m.fork(s, !twice, func(n *step) { deliver(n, false) })
	if m.unaware(s, x) && m.server.run(s.db, id, s.heard()).refused() {
		m.fork(s, !twice, func(n *step) { deliver(n, true) })
	}
}

// breaksDown is the end of a connection: the command was executed, or may be later.
func (n *step) breaksDown(id callID, executed bool) {
	n.used.broken++
	if executed {
		n.execute(id)
		n.says("the reply is lost")
		return
	}
	n.says("no reply comes: %v", n.m.server.calls[id])
	n.comesLate(id)
}

// repeat sends the command again.
func (n *step) repeat(x exchange) {
	n.says("it is sent again")
	if x.take {
		n.requests[x.r].repeated = true
		return
	}
	t := &n.tenures[x.r]
	c := n.m.server.calls[t.call]
	c.again = true
	t.call, t.repeated, t.staged = n.m.server.id(c), true, false
}

func (n *step) givesUp(x exchange, unaware bool) {
	if x.take {
		n.takeFailed(x.r)
	} else {
		n.fail(x.r, unavailable, unaware)
	}
}

// late delivers commands for which no client waits any more. They may also never arrive.
func (m *model) late(s *state) {
	for i, id := range s.late {
		if id == 0 {
			return
		}
		if i > 0 && s.late[i-1] == id {
			continue
		}
		m.fork(s, false, func(n *step) {
			n.says("late or again")
			n.execute(id)
			copy(n.late[i:], n.late[i+1:])
			n.late[copies-1] = 0
			if next := n.m.server.calls[id].then; next != 0 {
				n.comesLate(next)
			}
		})
		if s.used.doubled < m.bounds.Doubled && m.more(s) {
			m.fork(s, false, func(n *step) {
				n.used.doubled++
				n.maybe |= n.m.server.calls[id].carries
				n.says("late or again, and doubled")
				n.execute(id)
			})
		}
	}
}
