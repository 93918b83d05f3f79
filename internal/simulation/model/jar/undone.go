package jar

// A login is undone if it was answered, no logout was sent after its response, and the visitor is still not
// logged in. The violation names the requests beside it.
const (
	undoneByWrites   violation = "a login is undone beside writes only"
	undoneByAttacker violation = "a login is undone beside an attacker's requests"
	undoneByLogout   violation = "a login is undone beside a logout"
	undoneByRenew    violation = "a login is undone beside Renew"
	undoneByRemember violation = "a login is undone beside Remember"
	undoneByAgain    violation = "a login is undone beside the same login"
	undoneByOther    violation = "a login is undone beside another user's login"
	undoneSince      violation = "a login is undone since a response was lost"
)

// undone returns one of the violations above, or "".
func (m *world) undone(s *state) violation {
	if m.userOf(s, s.browser) != 0 || m.isEndedByAll(s) || !m.hasLoggedIn(s) {
		return ""
	}
	if m.hasLostCookie(s) {
		return undoneSince
	}
	return m.beside()
}

// beside returns the violation of a login that is undone.
func (m *world) beside() violation {
	var calls [remember + 1]int
	var logins [bob + 1]int
	for _, w := range m.works {
		if w.attacker {
			return undoneByAttacker
		}
		calls[w.what]++
		logins[w.user]++
	}
	switch {
	case calls[logout] > 0:
		return undoneByLogout
	case calls[renew] > 0:
		return undoneByRenew
	case calls[remember] > 0:
		return undoneByRemember
	case logins[ann] > 0 && logins[bob] > 0:
		return undoneByOther
	case calls[login] > 1:
		return undoneByAgain
	}
	return undoneByWrites
}

// isEndedByAll reports whether EndAll has ended the session whose cookie the browser has.
func (m *world) isEndedByAll(s *state) bool {
	id := s.browser.member
	if m.rules.oneCookie {
		id = s.browser.guest
	}
	for id >= 0 && s.sessions[id].to != none {
		id = s.sessions[id].to
	}
	return id >= 0 && s.sessions[id].byAll
}

// hasLoggedIn reports whether a login was answered, and no logout was sent after that.
func (m *world) hasLoggedIn(s *state) bool {
	for i := range m.works {
		if m.isOwn(i, login) && s.isDone(i) && !m.hasLogoutAfter(s, i) {
			return true
		}
	}
	return false
}

func (m *world) hasLogoutAfter(s *state, i int) bool {
	for j := range m.works {
		if m.isOwn(j, logout) && s.requests[j].after.has(i) {
			return true
		}
	}
	return false
}

// hasLostCookie reports whether a lost response could have changed who is logged in.
func (m *world) hasLostCookie(s *state) bool {
	for i, w := range m.works {
		q := &s.requests[i]
		isCause := w.what == login || w.what != write && q.had
		if isCause && !w.attacker && q.phase == lost && q.status == ok {
			return true
		}
	}
	return false
}
