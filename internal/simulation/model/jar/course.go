package jar

import (
	"math/rand/v2"
	"slices"
)

// A Course is one way that requests can take, with what the model expects of the server. Sessions have letters
// in the order in which they begin; see [Start] for the first ones.
type Course struct {
	Start    Start
	Limit    Limit
	Requests []Request
	Steps    []Step
}

// A Request is what a request is to do.
type Request struct {
	Call       string // write, login, logout, renew or remember
	User       string // who logs in: ann or bob
	Navigation bool   // a page is loaded; all other requests are in the background
	Attacker   bool   // it comes from the attacker's browser, not from the visitor's
}

// A Step is one thing that happens in a [Course].
type Step struct {
	Kind    Kind
	Request int // the index in Course.Requests; EndAll, Minute and Look have none

	// Open and Look: the letter of the session, and the requests whose writes are in it. If no session is opened, ""
	// and none.
	Session string
	Writes  []int

	// Commit: the status, and what the response does to the two cookies: "" if it leaves the cookie alone,
	// "-" if it deletes the cookie, or the letter of the session whose cookie it sets.
	Status        int
	Guest, Member string
}

// Random returns a course of two to four requests, drawn from a seed.
func Random(seed uint64) Course {
	r := rand.New(rand.NewPCG(seed, 0))
	starts := []Start{Nothing, Guest, Member, Dead, DeadAndGuest, MovedAndGuest, Planted, Elsewhere}
	c := Course{Start: starts[r.IntN(len(starts))], Limit: Limit(r.IntN(3))}
	m := newWorld(rules{}, c.Limit, c.Start, drawWords(r, c.Start))
	m.more = true
	for _, w := range m.works {
		c.Requests = append(c.Requests, Request{w.what.String(), w.user.String(), w.navigation, w.attacker})
	}
	for s := m.initial; !m.isOver(&s); {
		next := m.steps(&s, nil)
		p := next[r.IntN(len(next))]
		if p.kind >= EndAll && r.IntN(4) > 0 {
			continue // else most courses would have both
		}
		m.do(&s, p)
		c.Steps = append(c.Steps, m.expect(&s, p))
		if m.isOver(&s) {
			id, _ := m.find(&s, s.browser)
			c.Steps = append(c.Steps, m.expectOpen(&s, Step{Kind: Look}, id))
		}
	}
	return c
}

// drawWords draws the works of a course, with an attacker's if there is one.
func drawWords(r *rand.Rand, start Start) string {
	var known []string
	for word, w := range works {
		if !w.attacker || start == Planted {
			known = append(known, word)
		}
	}
	slices.Sort(known)
	words := ""
	for range 2 + r.IntN(3) {
		words += known[r.IntN(len(known))] + " "
	}
	return words
}

// expect returns what is expected of a step that has led to a state.
func (m *world) expect(s *state, p step) Step {
	e := Step{Kind: p.kind, Request: int(p.request)}
	q := &s.requests[p.request]
	switch {
	case p.kind == Commit:
		e.Status, e.Guest, e.Member = q.status.code(), letter(q.set.guest), letter(q.set.member)
	case p.kind == Open:
		return m.expectOpen(s, e, q.session)
	}
	return e
}

// expectOpen adds to a step the session that it opens.
func (m *world) expectOpen(s *state, e Step, id index) Step {
	if id == none {
		return e
	}
	e.Session = id.String()
	for i := range m.works {
		if s.sessions[id].writes.has(i) {
			e.Writes = append(e.Writes, i)
		}
	}
	return e
}

// letter returns what a response does to a cookie, as [Step] has it.
func letter(set index) string {
	switch set {
	case keep:
		return ""
	case drop:
		return "-"
	default:
		return set.String()
	}
}
