package session_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/internal/values"
	"github.com/a2139e8d/latchkey/session"
)

// Discard undoes all changes before it. Changes after it count.
func TestDiscardGoesBackToWhatWasOpened(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(*session.Session){
		"nothing":       func(*session.Session) {},
		"Set":           func(s *session.Session) { s.Set("a", 2); s.Set("b", 2) },
		"Delete":        func(s *session.Session) { s.Delete("a") },
		"Clear":         (*session.Session).Clear,
		"Renew":         (*session.Session).Renew,
		"Destroy":       func(s *session.Session) { s.Destroy(); s.Set("a", 2) },
		"a failed Set":  func(s *session.Session) { s.Set("a", make(chan int)) },
		"many Sets":     func(s *session.Session) { fill(s, 200) },
		"all, and once": func(s *session.Session) { s.Clear(); fill(s, 5); s.Discard(); s.Renew(); fill(s, 100) },
	} {
		for kind, config := range map[string]keep.Config{
			"a record":  {Data: []byte(`{"a":1}`)},
			"new":       {},
			"in memory": {Snapshot: snapshot(t, `{"a":1}`)},
			"read only": {Data: []byte(`{"a":1}`), ReadOnly: true},
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				want := 1
				if kind == "new" {
					want = 0
				}
				s := openWith(t, config)
				do(s)
				s.Discard()
				if n, _ := session.Get[int](s, "a"); n != want || s.Len() != want || s.IsNew() != (kind == "new") {
					t.Errorf("a = %d, %d keys, IsNew %v", n, s.Len(), s.IsNew())
				}
				if !config.ReadOnly {
					s.Set("c", 3)
					change := closed(t, s)
					if data, want := string(change.Data()), map[string]string{"new": `{"c":3}`}[kind]; data != want && data != `{"a":1,"c":3}` {
						t.Errorf("what is saved is %s", data)
					}
					if change.Renewed || change.Destroyed || change.Dropped != "" || !change.Changed {
						t.Errorf("Close = %+v", change)
					}
				} else if change := closed(t, s); change != (keep.Change{}) {
					t.Errorf("Close = %+v", change)
				}
				if s := openWith(t, config); s.Len() != want {
					t.Errorf("the next session has %d keys", s.Len())
				}
			})
		}
	}
}

func fill(s *session.Session, n int) {
	for i := range n {
		s.Set(fmt.Sprint("key", i), i)
	}
}

func snapshot(t *testing.T, data string) *values.Snapshot {
	t.Helper()
	s := openWith(t, keep.Config{Data: []byte(data)})
	s.Renew()
	return closed(t, s).Snapshot
}

// A deferred Discard does nothing after a commit: what is saved stays.
func TestDiscardAfterTheCloseDoesNothing(t *testing.T) {
	t.Parallel()
	s := openWith(t, keep.Config{Data: []byte(`{"a":1}`),
		Keeper: keeper{late: func(method, _, _ string) { t.Errorf("%s is reported as late", method) }}})
	s.Set("a", 2)
	change := closed(t, s)
	s.Discard()
	if n, _ := session.Get[int](s, "a"); n != 2 || string(change.Data()) != `{"a":2}` {
		t.Errorf("a = %d, saved %s", n, change.Data())
	}
}

// A test's session is reopened without a store: it holds what the commit would have stored. A second Close returns
// what was changed after the Reopen.
func TestReopenOfATestsSession(t *testing.T) {
	t.Parallel()
	var s session.Session
	s.Set("cart", "tea")
	ctx := session.NewContext(t.Context(), &s)
	if err := s.Reopen(ctx); !errors.Is(err, session.ErrOpen) {
		t.Errorf("Reopen before Commit = %v", err)
	}

	s.Set("cart", "milk")
	s.Discard() // back to what the test has given
	if cart, _ := session.Get[string](&s, "cart"); cart != "tea" || !s.IsNew() {
		t.Errorf("cart %q, IsNew %v", cart, s.IsNew())
	}
	must(t, s.Commit(ctx))
	must(t, s.Reopen(ctx))
	if cart, _ := session.Get[string](&s, "cart"); cart != "tea" || s.IsNew() {
		t.Errorf("cart %q after Reopen, IsNew %v", cart, s.IsNew())
	}
	s.Set("cart", "milk")
	s.Discard()
	s.Set("flash", "done")
	change := closed(t, &s)
	if string(change.Data()) != `{"cart":"tea","flash":"done"}` {
		t.Errorf("saved %s", change.Data())
	}
	must(t, s.Reopen(ctx))
	if change := closed(t, &s); change != (keep.Change{}) {
		t.Errorf("nothing was changed since, and Close = %+v", change)
	}

	must(t, s.Reopen(ctx))
	s.Destroy()
	must(t, s.Commit(ctx))
	if err := s.Reopen(ctx); err == nil || errors.Is(err, session.ErrOpen) {
		t.Errorf("Reopen after Destroy = %v", err)
	}

	var guest session.Session
	guest.Login("ann")
	must(t, guest.Commit(ctx))
	must(t, guest.Reopen(ctx))
	if guest.IsNew() || guest.User() != "ann" {
		t.Errorf("after a login IsNew = %v, User = %q", guest.IsNew(), guest.User())
	}

	var bad session.Session
	bad.Set("a", make(chan int))
	failed := bad.Commit(ctx)
	if err := bad.Reopen(ctx); failed == nil || !errors.Is(err, failed) {
		t.Errorf("Commit = %v, Reopen = %v", failed, err)
	}
}

// A session with a keeper is reopened by the keeper. If that fails, the session stays as it is.
func TestReopenAsksTheKeeper(t *testing.T) {
	t.Parallel()
	var s *session.Session
	stored, reports := `{"a":1}`, 0
	s = openWith(t, keep.Config{Data: []byte(stored), Keeper: keeper{
		reopen: func(context.Context) error { return keep.Open(s, keep.Config{Data: []byte(stored)}) },
		late:   func(string, string, string) { reports++ },
	}})
	s.Set("a", 2)
	closed(t, s)
	stored = `no JSON`
	if s.Reopen(t.Context()) == nil {
		t.Error("reopened over damaged data")
	}
	s.Set("a", 3)
	if n, _ := session.Get[int](s, "a"); n != 2 || reports != 1 {
		t.Errorf("a = %d and %d reports after a Reopen that failed", n, reports)
	}
	stored = `{"a":10}`
	must(t, s.Reopen(t.Context()))
	if n, _ := session.Get[int](s, "a"); n != 10 {
		t.Errorf("a = %d after Reopen", n)
	}
	s.Set("a", 11)
	if data := string(closed(t, s).Data()); data != `{"a":11}` || reports != 1 {
		t.Errorf("saved %s, %d reports", data, reports)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
