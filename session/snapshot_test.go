package session

import (
	"testing"

	"github.com/a2139e8d/latchkey/internal/keep"
)

// Sessions that are opened with the same snapshot share nothing that can change.
func TestASnapshotDoesNotChange(t *testing.T) {
	t.Parallel()
	var first Session
	first.Set("a", 1)
	first.Set("b", 1)
	change, err := first.Seal("test")
	if err != nil {
		t.Fatal(err)
	}
	open := func() *Session {
		s, err := Open(keep.Config{Data: change.Data, Snapshot: change.Snapshot})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for name, alter := range map[string]func(*Session){
		"Set of another value": func(s *Session) { s.Set("a", 2) },
		"Set of another key":   func(s *Session) { s.Set("0", 2) },
		"Delete":               func(s *Session) { s.Delete("a") },
		"Clear":                func(s *Session) { s.Clear() },
		"Clear and Set":        func(s *Session) { s.Clear(); s.Set("c", 2) },
	} {
		before := open()
		s := open()
		alter(s)
		again, err := s.Seal("test")
		if err != nil || !again.Changed {
			t.Errorf("%s: changed %v, %v", name, again.Changed, err)
		}
		// The new snapshot is what its bytes say.
		decoded, err := parse(again.Data)
		if err != nil || string(format(decoded)) != string(format(*again.Snapshot.(*[]entry))) {
			t.Errorf("%s: the snapshot is not what %s says: %v", name, again.Data, err)
		}
		for _, s := range []*Session{before, open()} {
			if got := string(format(s.values.sorted())); got != `{"a":1,"b":1}` {
				t.Errorf("%s in one session made another %s", name, got)
			}
		}
	}
}
