package jar

import (
	"slices"
	"testing"
)

// carryOut makes some steps in a model.
func carryOut(m *world, steps ...step) *state {
	s := m.initial
	for _, p := range steps {
		m.do(&s, p)
	}
	return &s
}

// An EndAll elsewhere ends ann's session while a handler holds it, and a write there is refused. It refuses a
// login of ann's that has arrived before, and no login of bob's.
func TestAnEndAllElsewhereOvertakesWhatIsUnderWay(t *testing.T) {
	for _, c := range []struct {
		start Start
		word  string
		want  status
	}{
		{Member, "write", conflict}, {Guest, "write", ok}, {Guest, "ann", conflict}, {Guest, "bob", ok},
		{Member, "logout", ok}, {Member, "renew", conflict},
	} {
		m := newWorld(rules{}, NoLimit, c.start, c.word)
		s := carryOut(m, step{Send, 0}, step{Open, 0}, step{kind: EndAll}, step{Commit, 0})
		if s.requests[0].status != c.want {
			t.Errorf("%s, %s: %s", c.start, c.word, m.told(s, step{Commit, 0}))
		}
		if m.initial.lifeOf(m.initial.browser.guest) != s.lifeOf(s.browser.guest) && c.want != ok {
			t.Errorf("%s, %s: the guest's session is not alive any more", c.start, c.word)
		}
	}
}

// For a minute, a background write with a moved ID is refused. After that the ID counts as unknown.
func TestAMovedIDIsForgottenAfterAMinute(t *testing.T) {
	m := newWorld(rules{}, NoLimit, Member, "renew write write")
	s := carryOut(m, step{Send, 0}, step{Send, 1}, step{Send, 2}, step{Open, 0}, step{Commit, 0}, step{Open, 1}, step{Commit, 1},
		step{kind: Minute}, step{Open, 2}, step{Commit, 2})
	if q := s.requests[1]; q.status != conflict {
		t.Error(m.told(s, step{Commit, 1}))
	}
	if q := s.requests[2]; q.status != ok || q.set != (cookies{2, keep}) {
		t.Error(m.told(s, step{Commit, 2}))
	}
}

// No minute passes while a handler runs, and no request opens a session that another request holds.
func TestWhatMayComeNext(t *testing.T) {
	m := newWorld(rules{}, NoLimit, Guest, "write ann")
	m.more = true
	has := func(s *state, p step) bool { return slices.Contains(m.steps(s, nil), p) }
	held := carryOut(m, step{Send, 0}, step{Send, 1}, step{Open, 0})
	if has(held, step{kind: Minute}) || has(held, step{Open, 1}) || !has(held, step{kind: EndAll}) || !has(held, step{Commit, 0}) {
		t.Errorf("while the session is held: %v", m.steps(held, nil))
	}
	free := carryOut(m, step{Send, 0}, step{Send, 1}, step{Open, 0}, step{Commit, 0})
	if !has(free, step{kind: Minute}) || !has(free, step{Open, 1}) || !has(free, step{Lose, 0}) {
		t.Errorf("when it is free: %v", m.steps(free, nil))
	}
}
