package jar

import "fmt"

const (
	maxRequests = 5 // one more than a model has: the checks try another request at the end
	maxSessions = 8
)

// A user is 0 if nobody is logged in.
type user int8

const (
	ann user = iota + 1
	bob
)

func (u user) String() string { return [...]string{"", "ann", "bob"}[u] }

// An index is the number of a session, or none. It is shown as a letter.
type index int8

const none index = -1

func (x index) String() string {
	if x == none {
		return "-"
	}
	return string('A' + rune(x))
}

// A set has the numbers of some sessions, or of some requests.
type set uint8

func (s set) has(i int) bool { return s>>i&1 != 0 }
func (s *set) add(i int)     { *s |= 1 << i }
func (s *set) drop(i int)    { *s &^= 1 << i }

// A life says what has become of a session's ID.
type life uint8

const (
	unborn    life = iota
	live           // the session can be used
	hasMoved       // a Login or Renew has given the session another ID, less than a minute ago
	ended          // the session has ended otherwise, less than a minute ago
	forgotten      // the ID has moved or ended, and a minute has passed
)

// A session is what is known of one ID.
type session struct {
	life     life
	member   bool
	user     user
	to       index // the ID to which it has moved, or none
	used     bool  // somebody has come back with it
	replaces set   // the older sessions that end when somebody first comes back with this one
	writes   set   // the requests whose writes it has
	byAll    bool  // EndAll has ended it
}

// cookies are the two cookies of a browser, or those that came with a request.
type cookies struct{ guest, member index }

func (c cookies) String() string { return fmt.Sprintf("guest %v, member %v", c.guest, c.member) }

// A state is all there is. It is comparable.
type state struct {
	sessions [maxSessions]session
	born     uint8
	requests [maxRequests]request
	browser  cookies
	planted  cookies // the attacker's
	endedAll bool    // ann's sessions were ended elsewhere
	minute   bool    // a minute has passed
	crossed  bool    // a request was sent while another was under way
}

// begin stores a new session and returns its index.
func (s *state) begin(n session) index {
	if s.born == maxSessions {
		panic("jar: too many sessions")
	}
	n.life, n.to = live, none
	s.sessions[s.born] = n
	s.born++
	return index(s.born - 1)
}

// lifeOf returns what has become of an ID. A missing ID is like one that is forgotten.
func (s *state) lifeOf(id index) life {
	if id < 0 {
		return forgotten
	}
	return s.sessions[id].life
}

func (s *state) end(id index) {
	if s.lifeOf(id) == live {
		s.sessions[id].life = ended
	}
}

// endEach ends some sessions.
func (s *state) endEach(ids set) {
	for i := range s.sessions {
		if ids.has(i) {
			s.end(index(i))
		}
	}
}

// successor follows an ID that has moved to the session that it has become. It returns none if that session
// has ended.
func (s *state) successor(id index) index {
	for s.lifeOf(id) == hasMoved {
		id = s.sessions[id].to
	}
	if s.lifeOf(id) != live {
		return none
	}
	return id
}
