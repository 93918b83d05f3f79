package jar

// login begins a member's session. It has the content of the session that the request has opened, whose ID
// moves.
func (m *world) login(s *state, q *request, u user) {
	n := session{member: true, user: u}
	if q.session != none {
		n.writes = s.sessions[q.session].writes
	}
	if !m.rules.oneCookie {
		m.replace(s, q.moved.member, &n)
		m.replace(s, q.moved.guest, &n)
	}
	switch {
	case q.overtaken && u == ann: // the password that was checked may be the one before the EndAll
		q.status = conflict
		return
	case !m.makeRoom(s, &n, q.session):
		q.status = refused
		return
	}
	if !m.rules.linger {
		s.endOther(q.moved.member, u)
	}
	if m.rules.atOnce {
		s.endEach(n.replaces)
		n.replaces = 0
	}
	if m.rules.loginKeeps && q.session != none {
		s.sessions[q.session] = session{life: live, to: none, used: true, member: true, user: u, writes: n.writes}
		m.set(s, q, q.session)
		return
	}
	id := s.begin(n)
	if q.session != none {
		s.sessions[q.session].life, s.sessions[q.session].to = hasMoved, id
	}
	m.set(s, q, id)
}

// replace decides whether the session that a moved ID has become gives way to the new login: it does if the
// user is the same and nobody has come back with it, since the response with its cookie may have been lost.
// Then its content goes along.
func (m *world) replace(s *state, movedID index, n *session) {
	was := s.successor(movedID)
	if was == none {
		return
	}
	o := &s.sessions[was]
	isSame := o.user == n.user
	if o.used || !isSame && !m.rules.anyUser {
		return
	}
	n.replaces |= o.replaces
	n.replaces.add(int(was))
	if isSame && !m.rules.empty {
		n.writes |= o.writes
	}
}

// endOther ends the session that a moved member's ID has become if it is of another user than u: another person
// has the browser now. A moved guest's ID ends nothing, since an attacker may have planted its cookie.
func (s *state) endOther(movedID index, u user) {
	was := s.successor(movedID)
	if was != none && s.sessions[was].user != 0 && s.sessions[was].user != u {
		s.end(was)
	}
}

// makeRoom applies MaxSessions to a login. A session that nobody has come back with gives way. It returns
// false if the login is refused.
func (m *world) makeRoom(s *state, n *session, from index) bool {
	if m.limit == NoLimit || from != none && s.sessions[from].user == n.user {
		return true
	}
	var surplus set
	for i := range s.sessions {
		switch o := &s.sessions[i]; {
		case o.life != live || o.user != n.user || n.replaces.has(i):
		case !o.used && !m.rules.oneCookie:
			n.replaces.add(i)
		case m.limit == Refuse:
			return false
		default:
			surplus.add(i)
		}
	}
	s.endEach(surplus)
	return true
}
