package model

// The first try of a request without a place, as in internal/records/take.go: SET lock token NX, and MGET
// lock record behind it, in one write. Commands of others may come between the two.
//
// PTTL, the command between them, has no step: its result depends only on time.

// A part is one command of a plain take.
type part uint8

const (
	seizes     part = iota // SET
	looks                  // MGET, of lock and record
	reads                  // the record alone
	looksAfter             // the lock alone
)

// parts are the commands of a plain take, in order.
func (w Switches) parts() []part {
	switch {
	case w.ReadFirst:
		return []part{reads, seizes}
	case w.ReadApart:
		return []part{seizes, reads, looksAfter}
	}
	return []part{seizes, looks}
}

// A found is what a plain take that is broken on purpose remembers.
type found struct {
	seized bool // the reply to SET was OK
	base   token
	chain  chain
	gone   bool
}

// plain has the steps of a plain take that is under way.
func (m *model) plain(s *state, r uint8) {
	q := &s.requests[r]
	sets := m.switches.parts()[q.part] == seizes
	m.fork(s, true, func(n *step) { n.plainPart(r) })
	if s.used.doubled < m.bounds.Doubled && m.more(s) {
		m.fork(s, false, func(n *step) {
			n.used.doubled++
			if sets {
				n.says("the network doubles the next one")
				n.comesLate(q.call)
				n.plainPart(r)
				return
			}
			// Replies have arrived twice, so the reply to another request's MGET is taken for this one's.
			n.says("%s gets the reply of another", name(r))
			n.rests(r)
		})
	}
	if s.used.broken >= m.bounds.Broken || !m.more(s) {
		return
	}
	breaks := func(n *step) {
		n.used.broken++
		if sets {
			n.says("no reply comes: %v", n.m.server.calls[q.call])
			n.comesLate(q.call)
		} else {
			n.says("the reply is lost")
		}
	}
	m.fork(s, false, func(n *step) { breaks(n); n.byScript(r, true) })
	m.fork(s, false, func(n *step) { breaks(n); n.takeFailed(r) })
}

// plainPart is the execution of the next command and, after the last one, the handling of the replies.
func (n *step) plainPart(r uint8) {
	q, v, w := &n.requests[r], n.view(), &n.m.switches
	parts := w.parts()
	switch parts[q.part] {
	case seizes:
		a := n.execute(q.call)
		q.found.seized = a.code == 1 && (w.TrustSet || w.ReadFirst)
	case reads:
		q.found = found{q.found.seized, v.stamp, v.chain, v.gone}
	}
	if q.part++; int(q.part) < len(parts) {
		return
	}
	v = n.view()
	f := q.found
	if !w.ReadFirst && !w.ReadApart {
		f = found{f.seized, v.stamp, v.chain, v.gone}
	}
	ours := v.lock == q.token
	if w.TrustSet || w.ReadFirst {
		ours = f.seized
	}
	n.says("Redis: %s finds %v%s, and %q", name(r), v.lock, v.turn.text(), f.chain)
	switch {
	case !ours && (!v.free() || w.TrustSet || w.ReadFirst):
		n.rests(r)
	case !ours, f.gone && !w.TakeTombstones:
		n.byScript(r, false)
	default:
		n.begins(r, f.base, f.chain)
	}
}

// byScript continues with take.lua, with the same token.
func (n *step) byScript(r uint8, ambiguous bool) {
	q := &n.requests[r]
	q.ambiguous = ambiguous
	q.part, q.found = 0, found{}
	q.call = n.m.server.id(call{kind: take, process: home(r), token: q.token})
	n.says("%s sends: %v", name(r), n.m.server.calls[q.call])
}
