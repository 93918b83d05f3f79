package model

// The time in which a process has the session, as in internal/records/tenure.go and
// internal/records/commit.go.

// tenureSteps are the steps of the tenure that r took.
func (m *model) tenureSteps(s *state, r uint8) {
	t := &s.tenures[r]
	if !t.active {
		return
	}
	if t.call != 0 {
		m.exchange(s, t.call, t.repeated, exchange{r, false})
	}
	h := t.holder
	if s.requests[h].phase == holding {
		m.ends(s, r)
		if v := &m.server.views[s.db]; v.lock != t.token {
			m.fork(s, false, func(n *step) { n.lapses(r) })
		}
	}
	if t.call != 0 || t.lapsed {
		return
	}
	if t.unlock != notYet { // the next commit decides what happens to the lock
		m.fork(s, true, func(n *step) { n.unlocks(r) })
		return
	}
	for q := range s.requests {
		if p := &s.requests[q]; p.phase == ended && p.tenure == r && p.flush {
			m.fork(s, true, func(n *step) {
				n.send(r, n.newToken(n.tenures[r].holder))
			})
			break
		}
	}
}

// ends are the ways in which the present hold may end: clocks decide which.
func (m *model) ends(s *state, r uint8) {
	t := &s.tenures[r]
	h := t.holder
	if m.work[h] != 'd' && s.first(home(r)) != 0 {
		m.fork(s, true, func(n *step) { n.end(r); n.handOver(r) })
		m.fork(s, true, func(n *step) { n.end(r); n.tenures[r].unlock = pass })
	}
	m.fork(s, true, func(n *step) { n.end(r); n.tenures[r].unlock = release })
}

// end makes a version with the changes of the present holder.
func (n *step) end(r uint8) {
	t := &n.tenures[r]
	h := t.holder
	q := &n.requests[h]
	q.phase = ended
	switch n.m.work[h] {
	case 'w', 'l', 'o':
		if !t.isOwn(n.m) {
			t.newest, t.stamp = t.newest.add(h), q.token
		}
	case 'd':
		t.gone, t.stamp = true, q.token
	}
	n.says("%s ends", name(h))
}

// handOver makes the next request in line the holder before anything is sent.
func (n *step) handOver(r uint8) {
	t := &n.tenures[r]
	n.requests[t.holder].flush = true
	early := t.holder
	n.give(r, n.newToken(n.first(home(r))-1))
	if n.m.switches.AnswerEarly {
		n.tell(early, answered)
	}
}

// give makes the next request in line the holder.
func (n *step) give(r uint8, token token) {
	t, w := &n.tenures[r], n.first(home(r))-1
	q := &n.requests[w]
	q.phase, q.token, q.tenure, q.joined, q.saw = holding, token, r, true, t.newest
	t.holder, t.unlock = w, notYet
	n.processes[home(r)].turn = w + 1
	n.says("%s holds %q", name(w), t.newest)
}

// unlocks sends the newest version, and the lock to its next holder.
func (n *step) unlocks(r uint8) {
	t := &n.tenures[r]
	var to token
	if w := n.first(home(r)); t.unlock == pass && w != 0 {
		to = n.newToken(w - 1)
	}
	n.send(r, to)
}

// send sends a commit.
func (n *step) send(r uint8, to token) {
	t := &n.tenures[r]
	c := call{kind: commit, process: home(r), token: t.token, to: to, base: t.base, on: t.stored}
	for q := range n.requests {
		if p := &n.requests[q]; p.phase == ended && p.tenure == r {
			p.phase = sent
			c.touches = true
			c.carries |= 1 << q
		}
	}
	if t.stamp != 0 {
		c.form, c.stamp, c.chain = data, t.stamp, t.newest
		if t.gone {
			c.form = tombstone
		} else if n.m.work[t.stamp.request()] == 'l' {
			c.staging = apart
			if n.m.switches.StageTogether {
				c.staging = shared
			}
		}
		t.stamp = 0
	}
	t.call, t.repeated, t.staged = n.m.server.id(c), false, false
	n.says("process %d sends: %v", home(r)+1, c)
}

// committed handles the reply to a commit.
func (n *step) committed(r uint8, a reply, unaware bool) {
	t := &n.tenures[r]
	c := n.m.server.calls[t.call]
	if a.refused() {
		n.checkRefusal(&c)
		v := lost
		if a.code == replyLostAgain || a.code == replyUnstaged && c.again {
			v = lostAgain
		}
		n.fail(r, v, unaware)
		return
	}
	t.call, t.repeated, t.staged, t.token = 0, false, false, c.to
	if c.form != nothing && !n.m.switches.KeepBase {
		t.base, t.stored = c.stamp, c.chain
	}
	for q := range n.requests {
		if p := &n.requests[q]; p.phase == sent && p.tenure == r {
			n.tell(uint8(q), answered)
		}
	}
	switch {
	case t.lapsed:
		n.tokens |= bit(c.to) // this token has no owner
		n.over(r)
	case c.to == 0:
		n.over(r)
	case t.unlock == pass && !c.to.of(t.holder) && n.first(home(r)) != 0:
		n.give(r, c.to)
	} // otherwise the holder keeps the lock or, if the next holder has gone, one more commit is sent
}

// over ends a tenure.
func (n *step) over(r uint8) {
	t := &n.tenures[r]
	p := home(r)
	if n.processes[p].turn == t.holder+1 && !t.lapsed {
		n.processes[p].turn = 0
	}
	*t = tenure{}
	n.advance(p)
}

// fail ends a tenure whose commit failed. Versions that were not stored are void. A holder that is still
// unaware of its turn goes back to the line.
func (n *step) fail(r uint8, v verdict, unaware bool) {
	t := &n.tenures[r]
	n.tokens |= bit(t.token) | bit(n.requests[t.holder].token) | bit(n.m.server.calls[t.call].to)
	n.void(r, v, unaware, sent)
	n.over(r)
}

// void tells the requests that hold the session, or have ended up to a phase, that their versions are not
// stored.
func (n *step) void(r uint8, v verdict, unaware bool, upTo phase) {
	for q := range n.requests {
		p := &n.requests[q]
		if p.tenure != r || p.phase < holding || p.phase > upTo {
			continue
		}
		switch {
		case p.phase == holding && unaware:
			n.says("%s goes back to the line", name(uint8(q)))
			*p = request{phase: inLine, began: p.began}
		case v != unavailable && n.m.work[q] == 't' && (!p.joined || n.m.switches.JoinedReadsVoid):
			// A request that took the lock and wrote nothing has read what was stored then.
			n.tell(uint8(q), answered)
		default:
			n.tell(uint8(q), v)
		}
	}
}

// lapses is the discovery that the lock is lost: the line goes on at once. A commit under way counts.
func (n *step) lapses(r uint8) {
	t := &n.tenures[r]
	n.says("%s learns that the lock is lost", name(t.holder))
	if t.call == 0 {
		n.fail(r, lost, false)
		return
	}
	t.lapsed = true
	n.void(r, lost, false, ended)
	n.processes[home(r)].turn = 0
	n.advance(home(r))
}
