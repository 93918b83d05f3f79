package jar

import "testing"

// onlyOne has the status of a single request, and what its response does to the cookies. The letters of the
// sessions are those of Start.
var onlyOne = []struct {
	name  string
	start Start
	word  string
	opens index
	want  status
	set   cookies
}{
	{"a write begins a guest's session", Nothing, "write", none, ok, cookies{0, keep}},
	{"a write with a dead member's cookie begins a guest's session", Dead, "write", none, ok, cookies{1, keep}},
	{"a write with a dead member's cookie is in the guest's session", DeadAndGuest, "write", 1, ok, cookies{keep, keep}},
	{"a background write with a moved ID is refused, also beside a guest's cookie", MovedAndGuest, "write", 2, conflict, cookies{keep, keep}},
	{"a navigation with a moved ID is in the guest's session", MovedAndGuest, "write-nav", 2, ok, cookies{keep, keep}},
	{"a Renew with a moved ID is refused, also beside a guest's cookie", MovedAndGuest, "renew", 2, conflict, cookies{keep, keep}},
	{"a Remember with a moved ID is refused, also beside a guest's cookie", MovedAndGuest, "remember", 2, conflict, cookies{keep, keep}},
	{"a login deletes the guest's cookie, even if none came", Nothing, "ann", none, ok, cookies{drop, 0}},
	{"a login begins from the guest's session beside a dead member's cookie", DeadAndGuest, "ann", 1, ok, cookies{drop, 2}},
	{"a Renew makes a guest a member", Guest, "renew", 0, ok, cookies{drop, 1}},
	{"a Renew begins nothing", Nothing, "renew", none, ok, cookies{keep, keep}},
	{"a Remember sets the guest's cookie again", Guest, "remember", 0, ok, cookies{0, keep}},
	{"a Remember gives a user's session another ID", Member, "remember", 0, ok, cookies{drop, 1}},
	{"a logout deletes a dead cookie, too", DeadAndGuest, "logout", 1, ok, cookies{drop, drop}},
	{"a logout deletes no cookie that did not come", Guest, "logout", 0, ok, cookies{drop, keep}},
}

func TestWhatAResponseDoesToTheCookies(t *testing.T) {
	for _, c := range onlyOne {
		t.Run(c.name, func(t *testing.T) {
			m := newWorld(rules{}, NoLimit, c.start, c.word)
			s := m.initial
			m.do(&s, step{kind: Send})
			m.do(&s, step{kind: Open})
			if s.requests[0].session != c.opens {
				t.Errorf("%s, not %v", m.told(&s, step{kind: Open}), c.opens)
			}
			m.do(&s, step{kind: Commit})
			if q := s.requests[0]; q.status != c.want || q.set != c.set {
				t.Errorf("%s; it should be %d, guest %s, member %s", m.told(&s, step{kind: Commit}),
					c.want.code(), effect(c.set.guest), effect(c.set.member))
			}
		})
	}
}

// A navigation with a moved ID begins a guest's session if the browser has no other session.
func TestANavigationWithAMovedIDBeginsAGuestsSession(t *testing.T) {
	m := newWorld(rules{}, NoLimit, Member, "ann write write-nav")
	s := carryOut(m, step{Send, 0}, step{Send, 1}, step{Send, 2}, step{Open, 0}, step{Commit, 0}, step{Open, 1}, step{Commit, 1},
		step{Open, 2}, step{Commit, 2})
	if q := s.requests[1]; q.status != conflict {
		t.Errorf("a background write: %s", m.told(s, step{Commit, 1}))
	}
	if q := s.requests[2]; q.status != ok || q.set != (cookies{2, keep}) {
		t.Errorf("a navigation: %s", m.told(s, step{Commit, 2}))
	}
}
