package users

// The rules that every step keeps.

// execute runs a command on Redis, and checks what it has changed there.
func (n *step) execute(id commandID) reply {
	c := &n.m.server.commands[id]
	before := n.view()
	r := n.m.server.run(n.db, id)
	n.db = r.db
	after := n.view()
	n.says("Redis at %d s: %v -> %d", n.time, c, r.code)
	if r.bad != "" || after.bad != "" {
		n.breaks("%s%s", r.bad, after.bad)
	}
	begun := after.alive &^ before.alive
	n.checkBeginning(c, before.alive, begun)
	n.checkMark(c, before, after)
	switch {
	case c.kind == login && begun != 0:
		n.checkReplaced(c, before, after)
	case c.kind == claim:
		n.checkClaim(c, before, after, r.sessions)
	}
	if before.ended != after.ended {
		n.checkEndAll(c)
	}
	for j := range uint8(maxCalls) {
		if before.alive.has(j) && !after.alive.has(j) {
			n.checkEnd(c, j)
		}
	}
	return r
}

// checkBeginning checks that a session begins once, and in time, and that a login does not begin one if
// the user's sessions were ended since its request arrived.
func (n *step) checkBeginning(c *command, alive, begun sessions) {
	if begun == 0 {
		return
	}
	switch was := n.calls[c.call].phase; {
	case n.begun&begun != 0:
		n.breaks("%v was over, and is alive again", begun)
	case c.kind != login && c.kind != create, begun != set(c.session):
		n.breaks("%v begins by itself", begun)
	case n.late(c):
		n.breaks("%v begins too late", begun)
	case was == refused && !n.m.words[c.call].refuse && n.ahead(c) == 0 && !(n.skew < 0 && c.arrived == n.ended):
		n.breaks("%v begins although its call was refused", begun)
	case c.kind == login && c.old != none && !alive.has(c.old):
		n.breaks("%v takes the place of %s, which is over", begun, name(c.old))
	case c.kind == login && c.old == none && c.arrived+n.missed(c) < n.ended:
		n.breaks("%v begins, and the user's sessions were ended since its request came", begun)
	}
	n.begun |= begun
}

// ahead returns by how much the clock was ahead with which a command was sent, or is ahead now. A script
// notices if that is more than a command may be late.
func (n *step) ahead(c *command) seconds {
	ahead := c.ahead
	if c.known != Unknown {
		ahead = max(ahead, seconds(c.known)-n.skew)
	}
	if ahead > within {
		return 0
	}
	return ahead
}

// missed is the length of the time before a login in which sessions may have been ended without its
// knowledge. It is not longer than its clock is ahead, or than the login was under way.
func (n *step) missed(c *command) seconds { return min(n.ahead(c), n.time-c.sent) }

// late reports whether a command that must not come late would be late now.
func (n *step) late(c *command) bool { return n.time > c.sent+within+n.ahead(c) }

// checkEndAll checks that an EndAll takes effect once, and in time, so that it ends no session that
// begins after it.
func (n *step) checkEndAll(c *command) {
	n.ended = n.time
	if c.kind == login && n.skew < 0 {
		return // done by now; nothing more is known since the clock was set back
	}
	switch was := n.calls[c.call].phase; {
	case c.kind != endAll:
		n.breaks("%v changes when the user's sessions were ended", c)
	case n.once>>c.call&1 != 0:
		n.breaks("EndAll %s is done twice", name(c.call))
	case n.late(c):
		n.breaks("EndAll %s is done too late", name(c.call))
	case was == done:
		n.breaks("EndAll %s is done after it has returned", name(c.call))
	}
	n.once |= 1 << c.call
}

// checkEnd checks that a session goes on until a command ends it.
func (n *step) checkEnd(c *command, session uint8) {
	switch c.kind {
	case end:
		if c.session == session {
			return
		}
	case commit:
		if c.session == session && c.tombstone {
			return
		}
	case endAll:
		if c.old != session && !n.m.guest(session) {
			return
		}
	case claim:
		return // see checkClaim
	case drop:
		if p := n.calls[session].phase; c.session == session && (p == failed || p == refused) {
			return
		}
	}
	n.breaks("%s is over, and nobody has ended it", name(session))
}

// checkReply checks that no call is refused without a reason, and that a success is true.
func (n *step) checkReply(i uint8, c *command, r *reply) {
	alive := n.view().alive
	switch {
	case c.kind == load, c.kind == claim:
		n.checkClaimReply(i, c, r)
	case c.kind == login && r.code == 4 && n.calls[i].pruned, c.kind == login && r.code == 4 && n.calls[i].part == countsAgain:
		n.breaks("%s is told a second time to take expired sessions off the list", name(i))
	case c.kind == login && r.code == 3 && alive.has(c.old):
		n.breaks("%s is told that %s is over, and it is alive", name(i), name(c.old))
	case c.kind == login && r.code == 2 && count(n.view().claimed()&^set(i)) <= int(c.most):
		n.breaks("%s is told that there are too many sessions, and %v were claimed", name(i), n.view().claimed()&^set(i))
	case (c.kind == login || c.kind == create) && r.code == 0 && (alive.has(i) || !n.begun.has(i)):
		n.breaks("%s is told that its ID is taken", name(i))
	case (c.kind == login || c.kind == create) && r.code == 1 && !n.begun.has(i):
		n.breaks("%s is told that its session is stored, and it never was", name(i))
	case c.kind == end && alive.has(c.session):
		n.breaks("%s has ended %s, and it is alive", name(i), name(c.session))
	case c.kind == take && r.code == 1 && !alive.has(c.session):
		n.breaks("%s has taken %s, which is over", name(i), name(c.session))
	case c.kind == commit && !c.tombstone && (r.code == 1 || r.code == 2) && !alive.has(c.session):
		n.breaks("%s has saved %s, which is over", name(i), name(c.session))
	case c.kind == take && r.code > 1 && alive.has(c.session):
		n.breaks("%s is told that %s is over, and it is alive", name(i), name(c.session))
	}
}

// checkRefused checks that a refusal because of the clock had a reason, unless the clock was set
// meanwhile.
func (n *step) checkRefused(i uint8, code int8) {
	a := &n.calls[i]
	switch {
	case n.set && (!a.set || a.arrived != n.time):
	case code == -1 && a.began == n.time:
		n.breaks("%s is told that it has come too late, and it has not", name(i))
	case code == -2 && a.arrived >= n.ended && n.time-a.arrived <= 3600:
		n.breaks("%s is told that the user's sessions were ended since its request came, and they were not", name(i))
	}
}

// checkFinish checks which sessions have ended when a call returns.
func (n *step) checkFinish(i uint8, p phase) {
	a, w := &n.calls[i], &n.m.words[i]
	alive := n.view().alive
	if p != done {
		return
	}
	if w.first == endsAll {
		if over := alive & a.sessions; over != 0 {
			n.breaks("EndAll %s has returned, and %v is alive", name(i), over)
		}
		if n.once>>i&1 == 0 {
			n.breaks("EndAll %s has returned, and was not done", name(i))
		}
	}
	if w.renames && alive.has(n.m.of[i]) {
		n.breaks("%s has a new ID, %s, and is alive under the old one", name(n.m.of[i]), name(i))
	}
}
