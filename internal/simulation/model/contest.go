package model

// The way of a request to the lock, as in internal/lease/contest.go and internal/lease/queue.go.

func (n *step) arrive(r uint8) {
	q := &n.requests[r]
	q.phase, q.began = inLine, uint8(n.chain.len())
	if n.view().gone {
		q.began = over
	}
	n.says("%s comes", name(r))
	if n.m.work[r] == 'o' {
		n.loads(r)
		return
	}
	n.advance(home(r))
}

// advance gives the turn in a process to the first request in its line.
func (n *step) advance(p uint8) {
	if r := n.first(p); n.processes[p].turn == 0 && r != 0 {
		n.processes[p].turn = r
		n.ask(r - 1)
	}
}

// ask sends a take. Each try has a new token, unless it is sure that no other request has the lock.
func (n *step) ask(r uint8) {
	q, p := &n.requests[r], &n.processes[home(r)]
	if p.listening && p.place == 0 {
		p.place = n.newPlace(home(r))
	}
	q.phase, q.repeated = asking, false
	if !q.ambiguous {
		q.token = n.newToken(r)
	}
	c := call{kind: take, process: home(r), token: q.token, place: p.place}
	if p.place == 0 {
		c.kind = seize
	}
	q.call = n.m.server.id(c)
	n.says("%s sends: %v", name(r), n.m.server.calls[q.call])
}

// worthAsking reports whether a take would change anything now. If so, r is notified, or finds out by itself.
func (m *model) worthAsking(s *state, r uint8) bool {
	v, mine := &m.server.views[s.db], s.processes[home(r)].place
	if v.free() && !m.switches.OnlyWhenTold {
		return true
	}
	return mine == 0 || v.turn == mine || !v.has(mine) || v.lock != 0 && v.lock == s.requests[r].token
}

func (n *step) asks(r uint8, useful bool) {
	if !useful {
		n.used.asked++
	}
	n.ask(r)
}

// takeReplied handles the reply to r's take.
func (n *step) takeReplied(r uint8, a reply) {
	q, p := &n.requests[r], &n.processes[home(r)]
	q.call, q.repeated = 0, false
	switch a.code {
	case 0:
		if a.holder == q.token {
			n.breaks("%s is refused the lock because it has it", name(r))
		}
		if p.place != 0 && a.joined == 0 {
			n.breaks("%s cannot stand in line", name(r))
		}
		n.rests(r)
	case 1:
		n.begins(r, n.view().stamp, n.view().chain)
	case 3:
		n.leaveContest(r, goneAlready)
	default:
		n.breaks("%s is told that there is no session, which has not timed out", name(r))
	}
}

// rests waits for another holder.
func (n *step) rests(r uint8) {
	q, p := &n.requests[r], &n.processes[home(r)]
	q.phase, q.call, q.part, q.found = resting, 0, 0, found{}
	if !q.ambiguous {
		q.token = 0
	}
	p.listening, p.owed = true, p.place
}

// begins begins a tenure with the record that the take has read.
func (n *step) begins(r uint8, base token, stored chain) {
	q, p, v := &n.requests[r], &n.processes[home(r)], n.view()
	switch {
	case v.lock != q.token:
		n.breaks("%s begins, and has not the lock", name(r))
	case v.stamp != base:
		n.breaks("%s begins with %q, and the record is %q", name(r), stored, v.chain)
	}
	p.place, p.owed = 0, 0
	q.phase, q.tenure, q.saw = holding, r, stored
	q.call, q.part, q.found, q.ambiguous = 0, 0, found{}, false
	n.tenures[r] = tenure{active: true, token: q.token, base: base, stored: stored, newest: stored, holder: r}
	n.says("%s holds %q", name(r), stored)
}

// leaveContest ends the turn of r, which has not got the lock. Its place belongs to the process: the next
// request in line has it now.
func (n *step) leaveContest(r uint8, v verdict) {
	p := &n.processes[home(r)]
	if n.requests[r].ambiguous {
		n.tokens |= bit(n.requests[r].token)
	}
	last := n.first(home(r)) == 0
	if last || n.m.switches.QuitAlways {
		n.places |= placeBit(p.place)
		p.place = 0
	}
	n.tell(r, v)
	p.turn = 0
	n.advance(home(r))
}

// leaves lets r leave: it has waited long enough, or its client goes away.
func (m *model) leaves(s *state, r uint8) {
	if s.used.left >= m.bounds.Left {
		return
	}
	m.fork(s, false, func(n *step) {
		n.used.left++
		n.says("%s has waited long enough", name(r))
		if n.requests[r].phase == inLine {
			n.tell(r, timedOut)
			return
		}
		n.leaveContest(r, timedOut)
	})
}

// takeFailed ends the take of r, which may or may not have been executed.
func (n *step) takeFailed(r uint8) {
	n.tokens |= bit(n.requests[r].token)
	n.leaveContest(r, timedOut)
}
