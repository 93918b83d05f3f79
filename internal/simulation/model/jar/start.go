package jar

import "strings"

// A Start says which sessions there are at first, and which cookies the browser has. The sessions have letters
// from A on. All are claimed, except the session to which a moved one has moved.
type Start string

const (
	Nothing       Start = "no cookie"
	Guest         Start = "a guest's cookie"                             // A is a guest's
	Member        Start = "a member's cookie"                            // A is ann's
	Dead          Start = "a dead member's cookie"                       // A was ann's, and has ended
	DeadAndGuest  Start = "a dead member's cookie and a guest's"         // A was ann's, and has ended; B is a guest's
	MovedAndGuest Start = "a moved member's cookie and a guest's"        // A was ann's, and has moved to B, whose cookie was lost; C is a guest's
	Planted       Start = "a planted guest's cookie"                     // A is a guest's; an attacker has the cookie, too
	Elsewhere     Start = "a guest's cookie, and ann in another browser" // A is a guest's; B is ann's, elsewhere
)

// A world is a number of requests, and what may happen beside them.
type world struct {
	rules   rules
	limit   Limit
	more    bool // ann's sessions may be ended elsewhere, once; and a minute may pass, once
	words   []string
	works   []work
	initial state
}

// newWorld returns the model of some requests. words are keys of works.
func newWorld(r rules, l Limit, start Start, words string) *world {
	m := &world{rules: r, limit: l, words: strings.Fields(words)}
	for _, word := range m.words {
		w, isWord := works[word]
		if !isWord {
			panic("jar: there is no work " + word)
		}
		m.works = append(m.works, w)
	}
	if len(m.works) >= maxRequests {
		panic("jar: too many requests")
	}
	s := &m.initial
	s.browser, s.planted = nobody, nobody
	for i := range s.sessions {
		s.sessions[i].to = none
	}
	for i := range s.requests {
		s.requests[i] = request{came: nobody, session: none, moved: nobody}
	}
	s.start(start)
	if r.oneCookie && s.browser.member != none {
		s.browser = cookies{s.browser.member, none}
	}
	return m
}

// start begins the sessions of a start.
func (s *state) start(start Start) {
	isAnns := session{member: true, user: ann, used: true}
	isGuests := session{used: true}
	switch start {
	case Nothing:
	case Guest:
		s.browser.guest = s.begin(isGuests)
	case Member:
		s.browser.member = s.begin(isAnns)
	case Dead:
		s.browser.member = s.begin(isAnns)
		s.end(s.browser.member)
	case DeadAndGuest:
		s.browser.member = s.begin(isAnns)
		s.end(s.browser.member)
		s.browser.guest = s.begin(isGuests)
	case MovedAndGuest:
		s.browser.member = s.begin(isAnns)
		from := &s.sessions[s.browser.member]
		from.life, from.to = hasMoved, s.begin(session{member: true, user: ann})
		s.browser.guest = s.begin(isGuests)
	case Elsewhere:
		s.browser.guest = s.begin(isGuests)
		s.begin(isAnns)
	case Planted:
		s.browser.guest = s.begin(isGuests)
		s.planted = s.browser
	default:
		panic("jar: there is no start " + start)
	}
}
