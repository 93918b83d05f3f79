package model

import "slices"

// This file has the other faults: leases and turns that expire, processes that crash, and the cleanup
// after them.

func (m *model) faults(s *state) {
	m.expiry(s)
	for p := range s.processes {
		q := &s.processes[p]
		switch {
		case !q.dead && s.used.crashed < m.bounds.Crashed && m.more(s) && s.busy(uint8(p)):
			m.fork(s, false, func(n *step) { n.crash(uint8(p)) })
		case q.dead && !q.deaf:
			m.fork(s, true, func(n *step) {
				n.processes[p].deaf = true
				n.says("Redis notices the crash")
			})
		}
	}
}

// expiry is the end of a lease, or of a turn that was given to a place. If no request relies on it, that
// is no fault.
func (m *model) expiry(s *state) {
	v := &m.server.views[s.db]
	if v.free() {
		return
	}
	relied := v.lock != 0 && s.alive(m, v.lock) || v.turn != 0 && s.stands(v.turn)
	if relied && (s.used.expired >= m.bounds.Expired || !m.more(s)) {
		return
	}
	m.fork(s, !relied, func(n *step) {
		if relied {
			n.used.expired++
		}
		n.says("the lock runs out")
		if v.turn != 0 && n.processes[v.turn.process()].owed == v.turn {
			n.processes[v.turn.process()].owed = 0
		}
		n.db = m.server.expire(n.db)
	})
}

// alive reports whether a live request has t, or may get it.
func (s *state) alive(m *model, t token) bool {
	for r := range s.requests {
		if q := &s.requests[r]; q.token == t && q.phase >= asking && q.phase < done {
			return true
		}
		if u := &s.tenures[r]; u.active && (u.token == t || u.call != 0 && m.server.calls[u.call].to == t) {
			return true
		}
	}
	return false
}

// stands reports whether a request waits at p.
func (s *state) stands(p place) bool {
	q := &s.processes[p.process()]
	return !q.dead && q.place == p
}

// busy reports whether anything is going on in p.
func (s *state) busy(p uint8) bool {
	for r := range uint8(requests) {
		if ph := s.requests[r].phase; home(r) == p && ph != idle && ph != done {
			return true
		}
	}
	return false
}

// heard has the bits of the processes that Redis believes to be listening.
func (s *state) heard() (mask uint8) {
	for p := range s.processes {
		if !s.processes[p].deaf {
			mask |= 1 << p
		}
	}
	return mask
}

// crash ends a process. Commands that it has sent may still arrive.
func (n *step) crash(p uint8) {
	n.used.crashed++
	n.says("process %d crashes", p+1)
	n.processes[p] = process{dead: true}
	for r := range uint8(requests) {
		if home(r) != p {
			continue
		}
		n.leavesCommands(r)
		n.tenures[r] = tenure{}
		if n.requests[r].phase != done {
			n.tell(r, crashed)
		}
		for i := range uint8(spares) {
			n.tokens &^= bit(tokenOf(r, i))
		}
	}
	for i := range uint8(spares) {
		n.places &^= placeBit(placeOf(p, i))
	}
}

// leavesCommands leaves the commands of r and of its tenure under way.
func (n *step) leavesCommands(r uint8) {
	q, t := &n.requests[r], &n.tenures[r]
	c := &n.m.server.calls[q.call]
	if q.call != 0 && !(c.kind == seize && slices.Contains(n.m.switches.parts()[:q.part], seizes)) {
		n.comesLate(q.call)
	}
	if first := n.m.stage(&n.state, exchange{r, false}); first != 0 {
		n.comesLate(first)
	} else if t.call != 0 {
		n.comesLate(t.call)
	}
}

// sweeps remove tokens and places without an owner, at any time, as in internal/lease/sweep.go.
func (m *model) sweeps(s *state) {
	for r := range uint8(requests) {
		for i := range uint8(spares) {
			if t := tokenOf(r, i); s.tokens&bit(t) != 0 {
				m.sweep(s, call{kind: giveBack, process: home(r), token: t})
			}
		}
	}
	for p := range uint8(processes) {
		for i := range uint8(spares) {
			if place := placeOf(p, i); s.places&placeBit(place) != 0 {
				m.sweep(s, call{kind: quit, process: p, place: place})
			}
		}
	}
}

func (m *model) sweep(s *state, c call) {
	m.fork(s, true, func(n *step) {
		n.says("swept")
		n.execute(m.server.id(c))
	})
}
