package history

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// The model of an account is the set of the user's live sessions, with the cookie that opens each, and
// its number. All sessions are one state, since EndAll is one step: there is no moment at which some have
// ended and others have not.
//
// A session is unclaimed until a request comes with its cookie. A login with an old cookie of an unclaimed session
// takes its number over, and replaces it: the replaced session is not listed any more, and ends when the new one is
// claimed.
//
// Six rules are weaker than that, because less is promised:
//
//   - A list is made in two steps. So it is judged for each session separately: a session that it shows
//     was alive at some moment of the request, and one that it does not show was not.
//   - A Renew, and a login in another session, put the new ID on the list before the old one has ended.
//     In between, a list and the count of an EndAll may find both. The same holds if such a request has
//     failed, until its new ID is removed.
//   - In between, an EndAll that spares the old ID ends the new one.
//   - The number of sessions that an EndAll has ended is unknown if its reply was lost and it was
//     repeated.
//   - A request claims its session before it takes effect. So a claim may come at any time after the request was
//     sent. If a login with an old cookie got no response, its session may replace another, which is not listed then.
//     If such a login finds a session that is claimed or ended just then, its number is unknown.
//   - A login is refused if an EndAll has taken effect since its request arrived. The model does not know
//     when that was. So an EndAll under way at the same time is enough, or one just before.

// accounts is the state: all sessions of a user.
type accounts [logins + 1]seat

// A seat is a session, by its label.
type seat struct {
	cookie string // "": it is over, or has not begun
	was    string // its earlier cookies, each after a space
	n      int    // notKnown: the first response tells it
	begun  int    // its number when it began
	fresh  bool   // nobody has come with its cookie
	above  int    // one more than the label of the session that it replaces while both are fresh; 0: none
}

const notKnown = -1

// replaced reports whether the session with a label gives way to another.
func (s *accounts) replaced(label int) bool {
	return slices.ContainsFunc(s[:], func(other seat) bool {
		return other.cookie != "" && other.fresh && other.above == label+1 && s[label].fresh
	})
}

// claim notes that a request has come with the cookie of a session. The sessions that it replaces end. It does not give
// way to another session any more, not even when a later Renew makes it unclaimed again.
func (s *accounts) claim(own *seat) {
	if own == nil || !own.fresh {
		return
	}
	next := own.above
	own.fresh, own.above = false, 0
	for next > 0 && s[next-1].fresh {
		next, s[next-1] = s[next-1].above, seat{}
	}
	for i := range s {
		if above := s[i].above; above > 0 && own == &s[above-1] {
			s[i].above = 0
		}
	}
}

// become returns the session that has moved from a cookie, or nil.
func (s *accounts) become(cookie string) *seat {
	for i := range s {
		if cookie != "" && slices.Contains(strings.Fields(s[i].was), cookie) {
			return &s[i]
		}
	}
	return nil
}

// move gives a session another cookie.
func (s *seat) move(cookie string) {
	s.cookie, s.was, s.begun, s.fresh, s.above = cookie, s.was+" "+s.cookie, s.n, true, 0
}

// tells reports whether n is the session's number, which it learns if it is unknown.
func (s *seat) tells(n int) bool {
	if s.n == notKnown {
		s.n = n
	}
	return s.n == n
}

// find returns the session that a cookie opens, or nil.
func (s *accounts) find(cookie string) *seat {
	for i := range s {
		if cookie != "" && s[i].cookie == cookie {
			return &s[i]
		}
	}
	return nil
}

// A move is a request as the checker sees it, or what a list says about one session.
type move struct {
	client int
	deed
	got        outcome
	call, back int64
	shown      bool // on the list
	slack      int  // how many more sessions an EndAll may have found
	sound      bool
	beside     bool     // an EndAll may have been done while it was under way, or just before
	spared     bool     // an EndAll that was under way has spared its session
	doubtful   []string // the old cookies of logins that may have replaced the session on the list
}

// from returns the state after a move, and whether its response is right. For a move without a response
// it is the state if the move took effect.
func (m *move) from(s accounts) (after accounts, right bool) {
	after = s
	own := after.find(m.cookie)
	if m.what != end && m.what != endAll && m.what != list && m.what != saw {
		after.claim(own)
	}
	got := &m.got
	switch {
	case m.what == list:
		return s, m.list(&s)
	case m.what == claims:
		after.claim(own)
		return after, true
	case m.what == saw:
		return s, own != nil
	case m.what == endAll:
		return m.endAll(s)
	case m.what == Login:
		return m.login(s)
	case m.what == end:
		if own == nil {
			own = after.become(m.cookie)
		}
		return after.without(own), !got.known || (own != nil) == (got.status == http.StatusNoContent)
	case m.what == Logout && own == nil: // it ends what the session has become
		return after.without(after.become(m.cookie)), true
	case m.what == Logout:
		return after.without(own), !got.known || got.status == http.StatusNoContent && got.user != ""
	case own == nil:
		return s, !got.known || m.refused()
	case got.known && (got.status != http.StatusOK || got.user == ""):
		return s, false
	case m.what == renew && got.known:
		right = got.cookie != "" && own.tells(got.n)
		own.move(got.cookie)
		return after, right
	case m.what == renew: // no client has the new cookie
		return after.without(own), true
	case m.what == Write && own.n == notKnown:
		own.n = max(got.n, 1)
	case m.what == Write:
		own.n++
	}
	return after, !got.known || got.cookie == "" && own.tells(got.n)
}

// list reports whether the list is right about one session.
func (m *move) list(s *accounts) bool {
	one := s[m.label]
	switch {
	case m.shown || one.cookie == "":
		return m.shown == (one.cookie != "" && !s.replaced(m.label))
	case s.replaced(m.label):
		return true
	}
	return one.fresh && slices.ContainsFunc(strings.Fields(one.was), func(c string) bool { return slices.Contains(m.doubtful, c) })
}

// top returns the label of the session that has taken the place of the one with a label, or that label.
func (s *accounts) top(label int) int {
	for i := range s {
		if s[i].cookie != "" && s[i].fresh && s[i].above == label+1 {
			return s.top(i)
		}
	}
	return label
}

// forget ends the session that a cookie opens, and reports whether there is one.
func (s *accounts) forget(cookie string) bool {
	own := s.find(cookie)
	if own == nil {
		return false
	}
	*own = seat{}
	return true
}

// without returns s after the end of one of its sessions, which may be nil.
func (s *accounts) without(one *seat) accounts {
	if one != nil {
		*one = seat{}
	}
	return *s
}

// login is from for a Login.
func (m *move) login(s accounts) (after accounts, right bool) {
	old, begun := s.find(m.cookie), seat{cookie: m.got.cookie, fresh: true}
	switch {
	case m.guest:
		begun.n = 1
	case old != nil:
		s.claim(old)
		begun = *old
		begun.move(m.got.cookie)
	case m.cookie != "":
		begun.n = notKnown
		if other := s.become(m.cookie); other != nil && other.fresh {
			begun.n = other.begun
			for i := range s {
				if &s[i] == other {
					begun.above = s.top(i) + 1
				}
			}
		}
	}
	begun.begun = max(begun.n, 0)
	if m.got.known && m.got.status != http.StatusOK { // its session, or all of the user's sessions, were ended meanwhile
		return s, old == nil && m.cookie != "" || m.beside
	}
	after = s.without(old)
	if m.got.known { // otherwise no client can open the session that may have begun
		after[m.label] = begun
	}
	return after, !m.got.known || begun.cookie != ""
}

// refused reports whether the response is right for a cookie that no longer opens anything. If its session was ended
// while the request had it, it is a 409. The model does not know whether the request had it.
func (m *move) refused() bool {
	empty := m.got.status == http.StatusOK && m.got.user == "" && m.got.n == 0
	switch {
	case m.got.status == http.StatusServiceUnavailable, m.got.status == http.StatusConflict:
		return m.got.cookie == ""
	case m.what == Read:
		return empty && m.got.cookie == ""
	case m.what == Write: // it begins a guest's session
		return m.got.status == http.StatusOK && m.got.user == "" && m.got.n == 1
	default: // a renew begins nothing
		return empty && m.got.cookie == ""
	}
}

// endAll is from for an EndAll. The session that is spared is known by the ID that its cookie has.
func (m *move) endAll(s accounts) (after accounts, right bool) {
	ended := 0
	for i := range s {
		if s[i].cookie != "" && s[i].cookie != m.cookie {
			s[i] = seat{}
			ended++
		}
		s[i].fresh, s[i].above = false, 0 // what is spared counts as claimed
	}
	n := m.got.n
	return s, !m.got.known || m.got.status == http.StatusOK && n <= ended+m.slack && (n >= ended || !m.sound)
}

// looks reports whether a move's response shows that the move has changed nothing, whenever it was made.
func (m *move) looks() bool {
	switch m.what {
	case list, saw, Read:
		return m.got.known
	case Login:
		return m.got.known && m.got.status != http.StatusOK
	case Write, renew:
		return m.got.known && (m.got.status != http.StatusOK || m.got.user == "")
	case end:
		return m.got.known && m.got.status != http.StatusNoContent
	}
	return false
}

func (m *move) String() string {
	until := "     …   "
	if m.back != never {
		until = fmt.Sprintf("%9.1f", ms(m.back))
	}
	text := fmt.Sprintf("%9.1f –%s ms  client %d  %-7s", ms(m.call), until, m.client, m.what)
	if m.what == list && m.shown {
		return text + fmt.Sprintf(" shows %d", m.label)
	} else if m.what == list {
		return text + fmt.Sprintf(" does not show %d", m.label)
	}
	text += fmt.Sprintf(" %2d with %-6s -> ", m.label, mark(m.cookie))
	if !m.got.known {
		return text + "no answer"
	}
	text += fmt.Sprintf("%d %q %d", m.got.status, m.got.user, m.got.n)
	if m.got.cookie != "" {
		text += ", now " + mark(m.got.cookie)
	}
	return text
}
