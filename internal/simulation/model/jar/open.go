package jar

// find returns the session that cookies open: the member's, or the guest's if the member's is dead. It also
// returns which of their IDs have moved. If the member's is live, the guest's is not looked at.
func (m *world) find(s *state, came cookies) (session index, moved cookies) {
	moved = nobody
	for _, c := range []struct{ id, moved *index }{{&came.member, &moved.member}, {&came.guest, &moved.guest}} {
		switch life := s.lifeOf(*c.id); {
		case life == live:
			return *c.id, moved
		case life == hasMoved, life == ended && m.rules.oneCookie:
			*c.moved = *c.id
		}
	}
	return none, moved
}

// isHeld reports whether a handler has the session.
func (s *state) isHeld(id index) bool {
	for i := range s.requests {
		if q := &s.requests[i]; q.phase == opened && q.session == id && id != none {
			return true
		}
	}
	return false
}

// open opens the session of a request, which no other handler holds.
func (m *world) open(s *state, i int) {
	q := &s.requests[i]
	q.session, q.moved = m.find(s, q.came)
	if q.session != none {
		s.comeBack(q.session)
	}
}

// comeBack notes that somebody has come back with a session. The first time, the older sessions end that it
// replaces. A newer session, if there is one, does not replace it any more: both stay.
func (s *state) comeBack(id index) {
	o := &s.sessions[id]
	if o.used {
		return
	}
	s.endEach(o.replaces)
	o.used, o.replaces = true, 0
	for i := range s.sessions {
		s.sessions[i].replaces.drop(int(id))
	}
}
