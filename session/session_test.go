package session_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/session"
)

// open returns a session over a stored record.
func open(t *testing.T, record string) *session.Session {
	t.Helper()
	return openWith(t, keep.Config{Data: []byte(record)})
}

func openWith(t *testing.T, c keep.Config) *session.Session {
	t.Helper()
	s, err := session.Open(c)
	if err != nil {
		t.Fatalf("Open(%s): %v", c.Data, err)
	}
	return s
}

// seal ends the request of s and returns what is to be done.
func seal(t *testing.T, s *session.Session) session.Change {
	t.Helper()
	change, err := s.Seal("the test")
	if err != nil {
		t.Fatalf("Seal: %v", err)
	}
	return change
}

// nextRequest seals s and returns the session that the visitor's next request
// sees.
func nextRequest(t *testing.T, s *session.Session) *session.Session {
	t.Helper()
	return open(t, string(seal(t, s).Data()))
}

func keys(s *session.Session) []string { return slices.Collect(s.Keys()) }

func TestTheZeroSessionIsEmptyNewAndUsable(t *testing.T) {
	t.Parallel()
	var s session.Session
	if s.Len() != 0 || len(keys(&s)) != 0 || s.ID() != "" || !s.IsNew() {
		t.Errorf("Len %d, Keys %v, ID %q, IsNew %v", s.Len(), keys(&s), s.ID(), s.IsNew())
	}
	s.Delete("absent")
	s.Clear()
	s.Set("a", 1)
	if a, ok := session.Get[int](&s, "a"); !ok || a != 1 || !s.IsNew() {
		t.Errorf("Get = %d, %v, IsNew %v", a, ok, s.IsNew())
	}
	if err := s.Commit(t.Context()); err != nil {
		t.Errorf("Commit: %v", err)
	}
}

func TestKeysAreThoseAtTheTimeOfTheCall(t *testing.T) {
	t.Parallel()
	s := open(t, `{"a":1,"b":2}`)
	all := s.Keys()
	for key := range all {
		s.Delete(key) // neither deadlocks nor confuses the loop
		s.Set("new "+key, 0)
	}
	if got := slices.Collect(all); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("an iterator made before the changes yields %q", got)
	}
	if got := keys(s); !slices.Equal(got, []string{"new a", "new b"}) {
		t.Errorf("Keys = %q", got)
	}
}

func TestIDAndCommitAreThoseOfWhoeverKeepsTheSession(t *testing.T) {
	t.Parallel()
	id := "old"
	type key struct{}
	failed := errors.New("the store is away")
	s := openWith(t, keep.Config{Keeper: keeper{id: func() string { return id }, commit: func(ctx context.Context) error {
		if ctx.Value(key{}) != "the handler's" {
			t.Error("Commit got another context")
		}
		return failed
	}}})
	if err := s.Commit(context.WithValue(t.Context(), key{}, "the handler's")); !errors.Is(err, failed) {
		t.Errorf("Commit = %v, want %v", err, failed)
	}
	before := s.ID()
	id = "new"
	if before != "old" || s.ID() != "new" {
		t.Errorf("ID was %q, then %q", before, s.ID())
	}
}

func TestCommitWithoutAStoreSealsAndStillTellsOfAFailedSet(t *testing.T) {
	t.Parallel()
	var s session.Session
	s.Set("nan", math.NaN())
	for range 2 { // the second Commit returns what the first one did
		if err := s.Commit(t.Context()); err == nil {
			t.Error("Commit = nil after a Set that failed")
		}
	}
	s.Set("late", 1)
	if s.Len() != 0 {
		t.Error("a Set after the Commit went through")
	}
}
