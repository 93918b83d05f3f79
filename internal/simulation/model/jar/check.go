package jar

// A violation is something that a visitor would not expect of a state in which all requests are over.
type violation string

// The violations. See undone.go for those of a login that is undone.
const (
	noPage     violation = "a navigation is refused"
	shutOut    violation = "a write is refused, for a minute, though no response was lost"
	shutSince  violation = "a write is refused, for a minute, since a response was lost"
	refusesOut violation = "RefuseLogin refuses ann, who is not logged in here"
	writeLost  violation = "a write is lost, though each request was sent after the one before was over"
	writeAside violation = "a write is not in the session that is logged in"
	stillIn    violation = "the visitor is logged in after a logout"
	another    violation = "the visitor is the user of before, though another has logged in since"
	stranger   violation = "a session is open to a browser in which its user has not logged in"
)

// violations returns what is wrong with a state in which all requests are over.
func (m *world) violations(s *state) (all []violation) {
	if v := m.undone(s); v != "" {
		all = append(all, v)
	}
	if m.try(s, work{what: write, navigation: true}) != ok {
		all = append(all, noPage)
	}
	if m.try(s, work{what: write}) != ok {
		if m.hasLost(s) {
			all = append(all, shutSince)
		} else {
			all = append(all, shutOut)
		}
	}
	in := m.userOf(s, s.browser)
	if m.limit == Refuse && in != ann && m.try(s, work{what: login, user: ann}) == refused {
		all = append(all, refusesOut)
	}
	if v := m.missing(s); v != "" {
		all = append(all, v)
	}
	if in != 0 && m.isStillIn(s) {
		all = append(all, stillIn)
	}
	if in != 0 && m.isAnother(s, in) {
		all = append(all, another)
	}
	if m.isStranger(s, s.browser, false) || m.isStranger(s, s.planted, true) {
		all = append(all, stranger)
	}
	return all
}

// userOf returns the user of the session that cookies open, or 0.
func (m *world) userOf(s *state, c cookies) user {
	if id, _ := m.find(s, c); id != none {
		return s.sessions[id].user
	}
	return 0
}

// try returns what one more request of the browser would be told.
func (m *world) try(s *state, w work) status {
	more, next, i := *m, *s, len(m.works)
	more.works = append(m.works[:i:i], w)
	for _, k := range []Kind{Send, Open, Commit} {
		more.do(&next, step{k, int8(i)})
	}
	return next.requests[i].status
}

// isOwn reports whether a request comes from the browser and makes this call.
func (m *world) isOwn(i int, w what) bool { return m.works[i].what == w && !m.works[i].attacker }

// isDone reports whether a request was answered, and not refused.
func (s *state) isDone(i int) bool {
	return s.requests[i].phase == answered && s.requests[i].status == ok
}

// isBefore reports whether a request could no longer set a cookie when another was sent.
func (s *state) isBefore(i, other int) bool {
	return s.requests[other].after.has(i) || s.requests[i].phase == lost
}

// hasLost reports whether a response to the browser was lost.
func (m *world) hasLost(s *state) bool {
	for i, w := range m.works {
		if s.requests[i].phase == lost && !w.attacker {
			return true
		}
	}
	return false
}

// isStillIn is for a visitor who is logged in. It reports whether a logout was answered, and all logins were over
// when that logout was sent.
func (m *world) isStillIn(s *state) bool {
	for j := range m.works {
		if m.isOwn(j, logout) && s.isDone(j) && m.areBefore(s, j, 0) {
			return true
		}
	}
	return false
}

// isAnother reports whether another user has logged in than the one who is logged in now, and all logins of the
// latter were over when that login was sent.
func (m *world) isAnother(s *state, in user) bool {
	for j, w := range m.works {
		if m.isOwn(j, login) && w.user != in && s.isDone(j) && m.areBefore(s, j, in) {
			return true
		}
	}
	return false
}

// areBefore reports whether all logins of a user, or of any if u is 0, were over when a request was sent.
func (m *world) areBefore(s *state, j int, u user) bool {
	for i, w := range m.works {
		if i != j && m.isOwn(i, login) && (u == 0 || w.user == u) && s.requests[i].status == ok && !s.isBefore(i, j) {
			return false
		}
	}
	return true
}

// isStranger reports whether cookies open the session of a user who has not logged in with that browser, neither
// at first nor by a request.
func (m *world) isStranger(s *state, c cookies, attacker bool) bool {
	u := m.userOf(s, c)
	if u == 0 {
		return false
	}
	for _, w := range m.works {
		if w.what == login && w.user == u && w.attacker == attacker {
			return false
		}
	}
	first := m.initial.browser
	if attacker {
		first = m.initial.planted
	}
	for _, id := range []index{first.guest, first.member} {
		if id = m.initial.successor(id); id != none && m.initial.sessions[id].user == u {
			return false
		}
	}
	return true
}

// missing reports a write that was answered, but is not in the session of the visitor, who is logged in. It
// reports nothing if the visitor was also logged out or was also another user, or if sessions have ended
// elsewhere, or were left alone for a minute.
func (m *world) missing(s *state) violation {
	home, _ := m.find(s, s.browser)
	if home == none || s.sessions[home].user != ann || s.endedAll || s.minute {
		return ""
	}
	for i, w := range m.works {
		if m.isOwn(i, logout) || w.attacker || w.what == login && w.user != ann {
			return ""
		}
	}
	for i := range m.works {
		if !m.isOwn(i, write) || !s.isDone(i) || s.sessions[home].writes.has(i) {
			continue
		}
		if s.crossed {
			return writeAside
		}
		return writeLost
	}
	return ""
}
