package model

// The way of a request to the lock, as in internal/lease/acquire.go and
// internal/lease/queue.go.

func (n *step) arrive(r uint8) {
	q := &n.requests[r]
	q.phase, q.began = inLine, uint8(n.chain.len())
	if n.view().gone {
		q.began = over
	}
	n.says("%s comes", name(r))
	n.advance(home(r))
}

// advance gives the turn in a process to who is first in its line.
func (n *step) advance(p uint8) {
	if r := n.first(p); n.processes[p].turn == 0 && r != 0 {
		n.processes[p].turn = r
		n.ask(r - 1)
	}
}

// ask sends a take. Each try has a token of its own.
func (n *step) ask(r uint8) {
	q, p := &n.requests[r], &n.processes[home(r)]
	if p.listening && p.place == 0 {
		p.place = n.newPlace(home(r))
	}
	q.phase, q.repeated, q.token = asking, false, n.newToken(r)
	q.call = n.m.server.id(call{kind: take, process: home(r), token: q.token, place: p.place})
	n.says("%s sends: %v", name(r), n.m.server.calls[q.call])
}

// worthAsking reports whether a take now would change anything. r is told then, or
// finds out by itself.
func (m *model) worthAsking(s *state, r uint8) bool {
	v, mine := &m.server.views[s.db], s.processes[home(r)].place
	if v.free() && !m.switches.OnlyWhenTold {
		return true
	}
	return mine == 0 || v.turn == mine || !v.has(mine)
}

func (n *step) asks(r uint8, useful bool) {
	if !useful {
		n.used.asked++
	}
	n.ask(r)
}

// takeReplied is what the reply to r's take leads to.
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
		q.phase, q.token, p.listening, p.owed = resting, 0, true, p.place
	case 1:
		v := n.view()
		p.place, p.owed = 0, 0
		q.phase, q.tenure, q.saw = holding, r, v.chain
		n.tenures[r] = tenure{active: true, token: q.token, base: v.stamp, stored: v.chain, newest: v.chain, holder: r}
		n.says("%s holds %q", name(r), v.chain)
	case 3:
		n.leaveContest(r, goneAlready)
	default:
		n.breaks("%s is told that there is no session, which has not timed out", name(r))
	}
}

// leaveContest ends the turn of r, which has not got the lock. Its place is the
// process's: whoever is next in line has it now.
func (n *step) leaveContest(r uint8, v verdict) {
	p := &n.processes[home(r)]
	last := n.first(home(r)) == 0
	if last || n.m.switches.QuitAlways {
		n.places |= placeBit(p.place)
		p.place = 0
	}
	n.tell(r, v)
	p.turn = 0
	n.advance(home(r))
}

// leaves is what happens when r has waited long enough, or its client goes away.
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
