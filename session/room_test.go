package session_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/session"
)

var errTooLarge = errors.New("too large")

func openLimited(t *testing.T, data string, limit int) *session.Session {
	return openWith(t, keep.Config{Data: []byte(data), MaxBytes: limit, TooLarge: errTooLarge})
}

// The Set for which there is no room fails, not the commit much later, and it keeps nothing: a
// handler that stores what a client sends it holds no more than MaxBytes of it.
func TestASetFindsNoRoom(t *testing.T) {
	t.Parallel()
	s := openLimited(t, "{}", 1000)
	for i := range 10_000 {
		s.Set(fmt.Sprint("field", i), i)
	}
	if s.Len() > 100 {
		t.Errorf("a session of at most 1000 bytes holds %d values", s.Len())
	}
	_, err := s.Seal("test")
	if !errors.Is(err, errTooLarge) || !strings.Contains(err.Error(), `Set("field`) {
		t.Errorf("Seal = %v, want ErrTooLarge, and the key that had no room", err)
	}
}

func TestRoomIsCountedToTheByte(t *testing.T) {
	t.Parallel()
	const stored = `{"a":1,"b":"two","\"quoted\"":3}`
	for name, do := range map[string]func(*session.Session){
		"a new value":         func(s *session.Session) { s.Set("new", "value") },
		"a new quoted key":    func(s *session.Session) { s.Set(`"`, 1) },
		"a longer value":      func(s *session.Session) { s.Set("b", "three") },
		"a shorter value":     func(s *session.Session) { s.Set("b", "") },
		"less of one, more":   func(s *session.Session) { s.Delete(`"quoted"`); s.Set("long", "0123456789") },
		"cleared, and filled": func(s *session.Session) { s.Clear(); s.Set("d", 1); s.Set("e", 1) },
	} {
		unlimited := openLimited(t, stored, 0)
		do(unlimited)
		size := len(seal(t, unlimited).Data())
		fits, tight := openLimited(t, stored, max(size, len(stored))), openLimited(t, stored, size-1)
		do(fits)
		seal(t, fits)
		do(tight)
		_, err := tight.Seal("test")
		if shrinks := name == "a shorter value"; errors.Is(err, errTooLarge) == shrinks {
			t.Errorf("%s: %d bytes where %d are allowed: %v", name, size, size-1, err)
		}
	}
}

// The error of a write to a read-only session names the first call that changed something.
func TestAWriteToAReadOnlySessionIsNamed(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(*session.Session){
		`Delete("flash")`: func(s *session.Session) {
			session.Pop[int](s, "absent") // changes nothing
			session.Pop[string](s, "flash")
			s.Set("late", 1)
		},
		"Renew: ":    func(s *session.Session) { s.Renew(); s.Set("user", "ann") },
		"Remember: ": func(s *session.Session) { s.Remember(time.Hour); s.Renew() },
	} {
		s := openWith(t, keep.Config{Data: []byte(`{"flash":"hello"}`), ReadOnly: true})
		do(s)
		if _, err := s.Seal("test"); !errors.Is(err, session.ErrReadOnly) || !strings.Contains(err.Error(), name) {
			t.Errorf("Seal = %v, want ErrReadOnly, and %s", err, name)
		}
	}
}
