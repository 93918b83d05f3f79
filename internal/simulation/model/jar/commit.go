package jar

// commit does what the handler of a request has asked for.
func (m *world) commit(s *state, i int) {
	q, w := &s.requests[i], m.works[i]
	q.set = cookies{keep, keep}
	switch isOver := q.session != none && s.lifeOf(q.session) != live; {
	case w.what == logout:
		m.logout(s, q)
	case isOver: // another request has ended the session while the handler ran
		q.status = conflict
	case w.what == write:
		m.write(s, i)
	case w.what == login:
		m.login(s, q, w.user)
	case w.what == renew:
		m.renew(s, q)
	case w.what == remember:
		m.remember(s, q)
	}
}

// isLate reports whether a background request must not change a guest's session, or begin one: an ID that
// came with it has moved, so its client is about to have the new cookie. A navigation is never late.
func (m *world) isLate(s *state, q *request, w work) bool {
	switch {
	case q.moved == nobody, w.navigation && !m.rules.refusePages:
		return false
	case m.rules.oneCookie:
		return q.session == none
	}
	return q.session == none || !s.sessions[q.session].member
}

// write saves what a handler has set.
func (m *world) write(s *state, i int) {
	q := &s.requests[i]
	switch {
	case m.isLate(s, q, m.works[i]):
		q.status = conflict
	case q.session != none:
		s.sessions[q.session].writes.add(i)
	default:
		n := session{}
		n.writes.add(i)
		m.set(s, q, s.begin(n))
	}
}

// renew gives the session another ID. If nothing is stored, nothing begins.
func (m *world) renew(s *state, q *request) {
	switch {
	case q.moved.member != none:
		q.status = conflict // it has been done
	case q.session != none:
		m.move(s, q)
	case m.rules.emptyRenew:
		m.set(s, q, s.begin(session{member: true}))
	}
}

// move gives the session of a request another ID, with which nobody has come back yet.
func (m *world) move(s *state, q *request) {
	from := &s.sessions[q.session]
	from.life = hasMoved
	from.to = s.begin(session{member: true, user: from.user, writes: from.writes, used: m.rules.renewCounts})
	m.set(s, q, from.to)
}

// remember gives the session another end, and its cookie with it. The session of a user gets another ID. An
// empty session is not stored, so it has no effect there.
func (m *world) remember(s *state, q *request) {
	switch {
	case q.session == none:
	case m.isLate(s, q, work{}):
		q.status = conflict
	case s.sessions[q.session].user != 0 && !m.rules.rememberKeep:
		m.move(s, q)
	default:
		m.set(s, q, q.session)
	}
}

// logout ends the session, and the one that a moved member's ID has become. A moved guest's ID ends nothing:
// it may be an attacker's, who has planted the cookie. The response deletes the cookies that came.
func (m *world) logout(s *state, q *request) {
	isLive := s.lifeOf(q.session) == live
	s.end(q.session)
	if !m.rules.linger {
		s.end(s.successor(q.moved.member))
	}
	if m.rules.oneCookie && !isLive {
		return // such a response left the cookie of an ended session alone
	}
	if q.came.guest != none {
		q.set.guest = drop
	}
	if q.came.member != none {
		q.set.member = drop
	}
}

// set makes the response set the cookie of a session. If a member's session has begun, the response also
// deletes the guest's cookie, even if none came: another response may have set one meanwhile. Nothing but a
// logout deletes a member's cookie.
func (m *world) set(s *state, q *request, id index) {
	switch {
	case m.rules.oneCookie:
		q.set.guest = id
	case s.sessions[id].member:
		q.set.member = id
		if q.session != id {
			q.set.guest = drop
		}
	default:
		q.set.guest = id
		if m.rules.dropDead && q.came.member != none {
			q.set.member = drop
		}
	}
}
