package users

import "math/bits"

// A world is a set of calls, and the faults that may happen.
type world struct {
	server *server
	bounds Bounds
	words  []word
	of     [maxCalls]uint8 // the session that a call needs, or none
	twin   [maxCalls]uint8 // a call before it that does the same, or none

	emit    func(*step)
	telling bool
	scratch step
}

// fork makes a step from s, and passes it to do unless the step does nothing.
func (m *world) fork(s *state, do func(n *step)) {
	n := &m.scratch
	*n = step{state: *s, m: m}
	do(n)
	if n.bad != "" || n.state != *s {
		m.emit(n)
	}
}

// next passes all steps from s to the explorer.
func (m *world) next(s *state) {
	for i := range uint8(len(m.words)) {
		switch a := &s.calls[i]; a.phase {
		case idle:
			if m.may(s, i) {
				m.fork(s, func(n *step) { n.begin(i) })
			}
		case waiting:
			m.fork(s, func(n *step) { n.send(i) })
		case sending:
			m.fork(s, func(n *step) { n.replied(i) })
			m.fork(s, func(n *step) {
				n.says("%s gives up", name(i))
				n.finish(i, failed)
			})
		}
	}
	for _, id := range s.sent {
		if id != 0 {
			m.fork(s, func(n *step) { n.says("a copy"); n.execute(id) })
		}
	}
	m.passes(s)
}

// may reports whether a call may begin.
func (m *world) may(s *state, i uint8) bool {
	if m.twin[i] != none && s.calls[m.twin[i]].phase == idle {
		return false
	}
	other := m.of[i]
	if other == none {
		return true
	}
	// Only its visitor takes a session, with the ID from a response. Others know the ID from the list.
	return s.begun.has(other) && (m.words[i].first != takes && m.words[i].first != loads || s.calls[other].phase == done)
}

// passes lets time pass, or sets Redis's clock. No call waits longer for a reply than for the timeout.
func (m *world) passes(s *state) {
	for i, span := range spans {
		if s.passed>>i&1 != 0 || bits.OnesCount8(s.passed) == m.bounds.Passes || m.waits(s, s.time+span) {
			continue
		}
		m.fork(s, func(n *step) {
			n.passed |= 1 << i
			n.time += span
			n.says("%d s pass", span)
			n.clock()
			n.forget()
		})
	}
	for _, by := range m.bounds.Sets {
		if !s.set && (by < 0 || !m.underWay(s)) {
			m.fork(s, func(n *step) {
				n.set = true
				n.skew += seconds(by)
				n.says("Redis's clock is set by %d s", by)
				n.clock()
			})
		}
	}
}

// underWay reports whether any call is under way.
func (m *world) underWay(s *state) bool {
	for i := range s.calls {
		if p := s.calls[i].phase; p == waiting || p == sending {
			return true
		}
	}
	return false
}

// clock tells Redis the time.
func (n *step) clock() {
	before := n.view().alive
	n.db = n.m.server.wait(n.db, n.time+n.skew)
	if n.view().alive != before {
		n.breaks("a session has run out")
	}
}

// waits reports whether a call would wait for too long at a time.
func (m *world) waits(s *state, time seconds) bool {
	for i := range s.calls {
		if a := &s.calls[i]; a.phase == sending && time > a.began+timeout {
			return true
		}
	}
	return false
}

// begin begins a call. For a login, its request arrives.
func (n *step) begin(i uint8) {
	a, w := &n.calls[i], &n.m.words[i]
	a.part, a.set = w.first, n.set
	if w.first == logsIn || w.renames {
		a.arrived = n.time
	}
	if w.first == logsIn {
		a.phase = waiting
		n.says("the request of login %s arrives", name(i))
		return
	}
	n.send(i)
}

// send sends the next part of a call.
func (n *step) send(i uint8) {
	a, w := &n.calls[i], &n.m.words[i]
	other := n.m.of[i]
	c := command{call: i, session: i, old: none, instead: none, guest: w.guest}
	switch a.part {
	case logsIn, countsAgain:
		c.kind, c.arrived, c.most, c.refuse = login, a.arrived, w.most-1, w.refuse
		if w.renames && !n.m.guest(other) {
			c.old = other
		}
		if w.instead && !n.m.guest(other) {
			c.instead = other
		}
		c.pruned = a.pruned || a.part == countsAgain && !n.m.server.switches.PrunesUnsaid
	case creates:
		c.kind = create
	case endsAll:
		c.kind = endAll
		if w.spares {
			c.old = other
		}
	case endsOne:
		c.kind, c.session, c.guest = end, other, n.m.guest(other)
	case endsSurplus:
		c.kind = end
		for !a.sessions.has(c.session) {
			c.session = (c.session + 1) % maxCalls
		}
	case takes:
		c.kind, c.session, c.guest = take, other, n.m.guest(other)
	case loads, claims:
		c.kind, c.session, c.guest, c.below = load, other, n.m.guest(other), a.below
		if a.part == claims {
			c.kind = claim
		}
	case commits:
		c.kind, c.session, c.guest = commit, other, n.m.guest(other)
		c.stamp, c.mark, c.tombstone = a.stamp, a.mark, w.renames
	}
	if a.tries == 0 {
		a.began = n.time
	}
	if c.kind.inTime() {
		c.known, c.sent = n.clocks[process(i)], n.time
		if c.known != Unknown {
			c.ahead = max(0, seconds(c.known)-n.skew)
		}
	}
	if c.kind == endAll {
		for j := range uint8(len(n.m.words)) {
			if n.view().alive.has(j) && !n.m.guest(j) && j != c.old && a.tries == 0 {
				a.sessions |= set(j)
			}
		}
	}
	a.phase, a.command = sending, n.m.server.id(c)
	n.keep(a.command)
	n.says("%s sends at %d s: %v", name(i), n.time, &c)
}

// guest reports whether the session that a call begins is a guest's.
func (m *world) guest(call uint8) bool { return m.words[call].guest }

// replied is the execution of a command whose reply is received.
func (n *step) replied(i uint8) {
	a := &n.calls[i]
	c := &n.m.server.commands[a.command]
	r := n.execute(a.command)
	if c.kind.inTime() && r.code < 0 {
		n.refused(i, c, r.code)
		return
	}
	a.tries = 0
	if c.kind == endAll {
		n.learn(i)
	}
	n.checkReply(i, c, &r)
	switch {
	case a.part == logsIn && r.code == 1 && r.sessions != 0:
		a.part, a.sessions = countsAgain, r.sessions
	case a.part == logsIn && r.code == 2:
		a.part = countsAgain
	case a.part == logsIn && r.code == 4 && !a.pruned:
		a.pruned = true
	case a.part == loads && r.code == 1 && r.unclaimed:
		a.part, a.below = claims, r.below
	case a.part == countsAgain && r.code == 1 && a.sessions&r.sessions != 0:
		a.part, a.sessions = endsSurplus, a.sessions&r.sessions
	case a.part == endsSurplus && a.sessions != set(c.session):
		a.sessions &^= set(c.session)
	case a.part == countsAgain && r.code == 0 && a.sessions != 0: // it was stored, and has been ended since
		n.finish(i, done)
		return
	case (a.part == logsIn || a.part == countsAgain) && r.code == 1 && n.m.words[i].renames:
		a.part = commits
	case c.kind == take && r.code == 1:
		a.stamp, a.mark = r.stamp, r.mark
		if a.part = commits; n.m.words[i].renames {
			a.part = logsIn
		}
	case r.code != 1 && (c.kind == login || c.kind == create || c.kind == load || c.kind == claim), c.kind == take, c.kind == commit && r.code != 1 && r.code != 2:
		n.finish(i, refused)
		return
	default:
		if c.kind == endAll {
			n.db = n.m.server.tidy(n.db, r.sessions)
		}
		n.finish(i, done)
		return
	}
	a.phase, a.command = waiting, 0
	n.send(i)
}

// refused is the effect of a command that Redis refused because of its clock.
func (n *step) refused(i uint8, c *command, code int8) {
	a := &n.calls[i]
	ahead := c.known != Unknown && c.sent+seconds(c.known) > n.time+n.skew
	if ahead && n.clocks[process(i)] == c.known && !n.m.server.switches.StayAhead {
		n.clocks[process(i)] = Unknown
	}
	n.learn(i)
	if a.tries++; a.tries < 3 {
		n.send(i)
		return
	}
	n.checkRefused(i, code)
	if code == -1 {
		n.finish(i, failed)
	} else {
		n.finish(i, refused)
	}
}

// learn records the time that Redis's clock shows.
func (n *step) learn(i uint8) {
	known := &n.clocks[process(i)]
	*known = max(*known, Clock(n.skew))
}

// finish ends a call. If a failed login has stored a session, it is removed in the background.
func (n *step) finish(i uint8, p phase) {
	n.says("%s: %s", name(i), [...]string{done: "done", refused: "refused", failed: "unavailable"}[p])
	a, w := &n.calls[i], &n.m.words[i]
	stores := a.part == logsIn || a.part == countsAgain || a.part == endsSurplus || w.renames && a.part == commits
	if p == failed && stores || p == refused && w.renames && a.part != takes {
		n.keep(n.m.server.id(command{kind: drop, call: i, session: i, old: none, instead: none}))
	}
	n.checkFinish(i, p)
	*a = attempt{phase: p}
}
