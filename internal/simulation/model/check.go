package model

// The rules that every step keeps.

// execute runs a call on Redis, and checks what it has changed there.
func (n *step) execute(id callID) reply {
	m := n.m
	c := &m.server.calls[id]
	a := m.server.run(n.db, id, n.heard())
	before := n.view()
	n.db = a.db
	after := n.view()
	n.says("Redis: %v -> %d", c, a.code)
	if a.bad != "" || after.bad != "" {
		n.breaks("%s%s", a.bad, after.bad)
	}
	n.checkRecord(c, before, after)
	n.checkLock(c, before, after)
	n.checkQueue(c, before, after)
	if (c.kind == commit || c.kind == save) && a.refused() && before.stamp != after.stamp {
		n.breaks("a commit that was refused has written")
	}
	// A take that comes late may put the place back, for a turn that is not used.
	if c.kind == take && a.code == 1 && after.has(c.place) && n.used.broken+n.used.doubled == 0 {
		n.breaks("%v has the lock, and its process still stands in the queue", c.token)
	}
	return a
}

// checkRecord checks that a request which changes the record has the lock, has read or written the
// previous record, and was not told otherwise.
func (n *step) checkRecord(c *call, before, after *view) {
	if before.there == after.there && before.stamp == after.stamp && before.chain == after.chain && before.gone == after.gone {
		return
	}
	switch {
	case before.gone:
		n.breaks("an ended ID has come back, or was forgotten")
	case c.kind != commit && c.kind != save, after.there && (after.stamp != c.stamp || after.gone != (c.form == tombstone)):
		n.breaks("the record is not what was to be written")
	case before.stamp != c.base, before.chain != c.on:
		n.breaks("%v was built on %q, and replaces %q", c.stamp, c.on, before.chain)
	case !before.chain.begins(c.chain), c.form == data && after.chain != c.chain:
		n.breaks("%q replaces %q", after.chain, before.chain)
	case c.kind == save && !before.free():
		n.breaks("%v is written without the lock, and another has it", c.stamp)
	case c.kind == save && len(before.queue) > 0:
		n.breaks("%v is written ahead of those that stand in the queue", c.stamp)
	case c.kind == commit && before.lock != c.token:
		n.breaks("%v writes, and has not the lock", c.token)
	}
	n.chain = c.chain
	for r := range uint8(requests) {
		// A copy of a refused write may be executed, and another write may build on it. r cannot know of that.
		if times, inARow := c.chain.count(r); inARow || times > 1 && n.maybe>>r&1 == 0 {
			n.breaks("%s has written twice", name(r))
		}
		if q := &n.requests[r]; c.carries>>r&1 != 0 && q.verdict != none && n.maybe>>r&1 == 0 {
			n.breaks("%s was refused, and its version is stored", name(r))
		}
	}
}

// checkLock checks that the lock is never taken away from its holder.
func (n *step) checkLock(c *call, before, after *view) {
	if before.lock == after.lock && before.turn == after.turn {
		return
	}
	mine := before.lock != 0 && before.lock == c.token || before.turn != 0 && before.turn == c.place
	if !before.free() && !mine {
		n.breaks("the lock is taken away from who has it")
	}
	if before.free() && (c.kind != take && c.kind != seize || after.lock != c.token) {
		n.breaks("the lock comes from nowhere")
	}
	if after.free() {
		for _, p := range after.queue {
			if !n.processes[p.process()].deaf {
				n.breaks("the lock is free, and %s stands in the queue", p.text())
			}
		}
	}
	if after.turn != 0 && c.kind != take {
		for _, p := range before.queue { // the first one that can be notified is next
			if p != c.place && !n.processes[p.process()].deaf {
				if after.turn != p {
					n.breaks("%s has the turn, and %s stood before it", after.turn.text(), p.text())
				}
				break
			}
		}
	}
}

// checkQueue checks that the queue keeps its order, and that no place is dropped while a request waits
// there.
func (n *step) checkQueue(c *call, before, after *view) {
	from := 0
	for i, p := range after.queue {
		for from < len(before.queue) && before.queue[from] != p {
			from++
		}
		if from == len(before.queue) && (i != len(after.queue)-1 || p != c.place || c.kind != take) {
			n.breaks("the queue has changed its order")
		}
	}
	for p := range uint8(processes) {
		q := &n.processes[p]
		switch own := q.owed; {
		case own == 0 || before.turn != own && !before.has(own) || after.turn == own || after.has(own):
		case c.kind == take && c.process == p:
			q.owed = 0
		case !q.dead:
			n.breaks("%s is dropped, and somebody waits there", own.text())
		}
	}
}

func (v *view) has(p place) bool {
	for _, q := range v.queue {
		if q == p {
			return true
		}
	}
	return false
}

// checkRefusal checks that a commit that was done is not refused, however often it was sent.
func (n *step) checkRefusal(c *call) {
	if now := n.view(); c.to != 0 && now.lock == c.to || c.form != nothing && now.stamp == c.stamp {
		n.breaks("a commit that was done is refused when it is repeated")
	}
}

// checkAnswer checks that a response is true, and that without faults every request succeeds.
func (n *step) checkAnswer(r uint8, v verdict) {
	q, now := &n.requests[r], n.view()
	stored := n.chain.has(r)
	if n.m.work[r] == 'd' {
		stored = now.gone && now.stamp.of(r) || !now.there
	}
	switch {
	case v == answered && n.m.work[r] != 't' && !stored:
		n.breaks("%s is told done, and nothing is stored", name(r))
	case v == answered && q.began == over:
		n.breaks("%s is told done, and the session had ended before it came", name(r))
	case v == answered && n.m.work[r] == 't' && (!q.saw.begins(n.chain) || q.saw.len() < int(q.began)):
		n.breaks("%s has seen %q, which was not stored while it was there", name(r), q.saw)
	case v == goneAlready && !now.gone:
		n.breaks("%s is told gone, and the session is there", name(r))
	case v.refused() && stored && n.maybe>>r&1 == 0:
		n.breaks("%s is refused, and its version is stored", name(r))
	case v != answered && v != goneAlready && n.used == (used{asked: n.used.asked}):
		n.breaks("%s is refused, and nothing was wrong", name(r))
	}
}
