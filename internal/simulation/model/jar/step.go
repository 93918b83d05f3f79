package jar

import "fmt"

// A Kind is what happens in a [Step].
type Kind uint8

const (
	Send   Kind = iota // a request is sent, with the cookies that its browser has now
	Open               // it comes to the server, and opens its session, which no other request holds
	Commit             // its handler returns, and its session is committed
	Answer             // its response comes, and sets the browser's cookies
	Lose               // its response is lost
	EndAll             // ann's sessions are ended elsewhere
	Minute             // a minute passes, in which no handler runs
	Look               // only at the end of a Course: the visitor loads a page, which changes nothing
)

// A step is one thing that happens: to one of the requests, or beside them.
type step struct {
	kind    Kind
	request int8
}

// steps appends to all the steps that may come next. Of two requests with the same work, which stand side by
// side, the first is sent first.
func (m *world) steps(s *state, all []step) []step {
	runs := false
	for i := range m.works {
		is := func(k Kind) { all = append(all, step{k, int8(i)}) }
		switch q := &s.requests[i]; q.phase {
		case waiting:
			if i == 0 || m.works[i] != m.works[i-1] || s.requests[i-1].phase != waiting {
				is(Send)
			}
		case sent:
			if session, _ := m.find(s, q.came); !s.isHeld(session) {
				is(Open)
			}
		case opened:
			runs = true
			is(Commit)
		case committed:
			is(Answer)
			is(Lose)
		}
	}
	if m.more && !s.endedAll {
		all = append(all, step{kind: EndAll})
	}
	if m.more && !s.minute && !runs {
		all = append(all, step{kind: Minute})
	}
	return all
}

// do changes a state by a step.
func (m *world) do(s *state, p step) {
	i := int(p.request)
	q := &s.requests[i]
	switch p.kind {
	case Send:
		m.send(s, i)
	case Open:
		q.phase = opened
		m.open(s, i)
	case Commit:
		q.phase = committed
		m.commit(s, i)
		q.forget()
	case Answer:
		q.phase = answered
		browser := m.browser(s, i)
		put(&browser.guest, q.set.guest)
		put(&browser.member, q.set.member)
		q.set = cookies{}
	case Lose:
		q.phase, q.set = lost, cookies{}
	case EndAll:
		s.endAll()
	case Minute:
		s.pass()
	}
}

// browser returns the cookies of the browser that a request comes from.
func (m *world) browser(s *state, i int) *cookies {
	if m.works[i].attacker {
		return &s.planted
	}
	return &s.browser
}

func (m *world) send(s *state, i int) {
	q := &s.requests[i]
	q.phase, q.came = sent, *m.browser(s, i)
	for j := range m.works {
		switch s.requests[j].phase {
		case answered:
			q.after.add(j)
		case sent, opened, committed:
			s.crossed = s.crossed || j != i
		}
	}
}

func put(cookie *index, set index) {
	switch set {
	case keep:
	case drop:
		*cookie = none
	default:
		*cookie = set
	}
}

// endAll ends ann's sessions. A login that has arrived may have checked an old password, and will be refused.
func (s *state) endAll() {
	s.endedAll = true
	for i := range s.sessions {
		if o := &s.sessions[i]; o.life == live && o.user == ann {
			o.life, o.byAll = ended, true
		}
	}
	for i := range s.requests {
		if q := &s.requests[i]; q.phase == opened {
			q.overtaken = true
		}
	}
}

// pass lets a minute pass. Then nobody knows any more what has become of the IDs that have moved or ended.
func (s *state) pass() {
	s.minute = true
	for i := range s.sessions {
		if o := &s.sessions[i]; o.life == hasMoved || o.life == ended {
			o.life = forgotten
		}
	}
}

// told describes a step that has led to a state.
func (m *world) told(s *state, p step) string {
	switch p.kind {
	case EndAll:
		return "ann's sessions are ended elsewhere"
	case Minute:
		return "a minute passes"
	}
	i := int(p.request)
	q := &s.requests[i]
	name := fmt.Sprintf("%s#%d", m.words[i], i+1)
	switch p.kind {
	case Send:
		return fmt.Sprintf("%s is sent with %v", name, q.came)
	case Open:
		return fmt.Sprintf("%s opens %v", name, q.session)
	case Commit:
		return fmt.Sprintf("%s is done: %d, guest %s, member %s", name, q.status.code(), effect(q.set.guest), effect(q.set.member))
	case Answer:
		return fmt.Sprintf("%s is answered: the browser has %v", name, *m.browser(s, i))
	default:
		return fmt.Sprintf("the response to %s is lost", name)
	}
}

// effect says what a response does to a cookie.
func effect(set index) string {
	switch set {
	case keep:
		return "kept"
	case drop:
		return "deleted"
	default:
		return "=" + set.String()
	}
}
