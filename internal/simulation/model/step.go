package model

import (
	"fmt"
	"slices"
	"strings"
)

// A model is a set of requests, and the faults that may happen.
type model struct {
	server   *server
	bounds   Bounds
	switches Switches
	// The letters of the requests: w(rite), l(arge write), t(ouch), d(estroy), or o: write without the
	// lock.
	work string

	emit    func(*step)
	telling bool
	scratch step
}

// A step is how a state becomes another.
type step struct {
	state
	m     *model
	bad   string // the rule that was broken
	calm  bool   // no fault, and no command that comes late or for the first time
	story []string
}

// says adds a line to the story, if the story will be read.
func (n *step) says(format string, args ...any) {
	if n.m.telling {
		n.story = append(n.story, fmt.Sprintf(format, args...))
	}
}

// breaks records that a rule was broken.
func (n *step) breaks(format string, args ...any) {
	if n.bad == "" {
		n.bad = fmt.Sprintf(format, args...)
	}
}

func (n *step) view() *view { return &n.m.server.views[n.db] }

func name(r uint8) string { return string(rune('A' + r)) }

// fork makes a step from s, and passes it to do unless the step does nothing.
func (m *model) fork(s *state, calm bool, do func(n *step)) {
	n := &m.scratch
	*n = step{state: *s, m: m, calm: calm}
	do(n)
	n.tidy()
	if n.bad != "" || n.state != *s {
		m.emit(n)
	}
}

// next passes all steps from s to the explorer.
func (m *model) next(s *state) {
	for r := range uint8(requests) {
		q := &s.requests[r]
		switch q.phase {
		case idle:
			// A and B are interchangeable but for what they do, so A comes first.
			if r != 1 || s.requests[0].phase != idle {
				m.fork(s, false, func(n *step) { n.arrive(r) })
			}
		case saving:
			m.saves(s, r)
		case inLine:
			m.leaves(s, r)
		case asking:
			if m.server.calls[q.call].kind == seize {
				m.plain(s, r)
			} else {
				m.exchange(s, q.call, q.repeated, exchange{r, true})
			}
		case resting:
			m.leaves(s, r)
			if useful := m.worthAsking(s, r); useful || s.used.asked < m.bounds.Asked {
				m.fork(s, useful, func(n *step) { n.asks(r, useful) })
			}
		}
		m.tenureSteps(s, r)
	}
	m.late(s)
	m.faults(s)
	m.sweeps(s)
}

// tokensOnTheirWay returns the tokens that are in the lock or in a command.
func (n *step) tokensOnTheirWay() (mask uint16, places uint8) {
	add := func(id callID) {
		for ; id != 0; id = n.m.server.calls[id].then {
			c := &n.m.server.calls[id]
			mask |= bit(c.token) | bit(c.to)
			places |= placeBit(c.place)
		}
	}
	v := n.view()
	mask, places = bit(v.lock), placeBit(v.turn)
	for _, p := range v.queue {
		places |= placeBit(p)
	}
	for _, id := range n.state.late {
		add(id)
	}
	for r := range n.requests {
		add(n.requests[r].call)
		add(n.tenures[r].call)
	}
	return mask, places
}

func bit(t token) uint16 {
	if t == 0 || t == born {
		return 0
	}
	return 1 << (t - 1)
}

func placeBit(p place) uint8 {
	if p == 0 {
		return 0
	}
	return 1 << (p - 1)
}

// tidy forgets what no longer makes a difference.
func (n *step) tidy() {
	if n.tokens != 0 || n.places != 0 {
		tokens, places := n.tokensOnTheirWay()
		n.tokens &= tokens
		n.places &= places
	}
	if n.view().staged != 0 {
		n.db = n.m.server.tidy(n.db, n.wantsStaged())
	}
	for p := range n.processes {
		if q := &n.processes[p]; q.owed != 0 && !n.waits(uint8(p)) {
			q.owed = 0
		}
	}
}

// newToken returns a token of r that is not in use.
func (n *step) newToken(r uint8) token {
	mask, _ := n.tokensOnTheirWay()
	for _, t := range n.state.tenures {
		mask |= bit(t.token)
	}
	for i := range uint8(spares) {
		if t := tokenOf(r, i); mask&bit(t) == 0 && (n.m.work[r] != 'o' || t != ownStamp(r)) {
			return t
		}
	}
	n.breaks("the model has too few tokens")
	return 0
}

// newPlace returns a place of p that is not in use.
func (n *step) newPlace(p uint8) place {
	_, mask := n.tokensOnTheirWay()
	for i := range uint8(spares) {
		if place := placeOf(p, i); mask&placeBit(place) == 0 {
			return place
		}
	}
	n.breaks("the model has too few places")
	return 0
}

// comesLate leaves a command under way for which no client waits any more.
func (n *step) comesLate(id callID) {
	if n.late[copies-1] != 0 {
		n.breaks("the model has room for too few commands")
		return
	}
	n.late[copies-1] = id
	slices.SortFunc(n.late[:], func(a, b callID) int { return int(b) - int(a) })
}

// tell sends the response to r.
func (n *step) tell(r uint8, v verdict) {
	n.says("%s is told: %s", name(r), [...]string{answered: "done", timedOut: "timeout", goneAlready: "gone",
		lost: "lost", lostAgain: "unavailable", unavailable: "unavailable", crashed: "nothing"}[v])
	n.checkAnswer(r, v)
	if !v.refused() || n.m.work[r] == 't' {
		v = none // nothing depends on it any more
	}
	n.requests[r] = request{phase: done, verdict: v}
}

func (n *step) told() string { return strings.Join(n.story, "; ") }
