package store

import (
	"slices"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// P10, P14: a user's session costs as many round trips as any, and its end one, whatever the number.
func TestRequestsOfUsers(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st, p := tapped(t, s, patient)
		costs := func(first bool, what string, want int, do func() error) {
			t.Helper()
			p.Forget()
			wantError(t, what, do(), nil)
			if got := p.RoundTrips(); got != want && !first {
				t.Errorf("%s costs %d round trips, want %d: %q", what, got, want, p.Commands())
			}
		}
		for round, first := range []bool{true, false} { // at first Redis does not know the scripts
			ctx, user := t.Context(), string(rune('a'+round))
			guest, id, next := newID+user, idOf(st, user, 1), idOf(st, user, 2)
			var h *Hold
			var read Record
			take := func(id string) func() error {
				return func() (err error) { h, err = st.Take(ctx, id, Terms{}); return err }
			}
			costs(first, "the guest", 1, func() error { return st.Create(ctx, guest, []byte("1"), Terms{}) })
			costs(first, "Take of the guest", 1, take(guest))
			h.Record.User = user
			costs(first, "a login", 2, func() error { return h.Renew(ctx, id, []byte("2")) })
			costs(first, "Take", 1, take(id))
			costs(first, "Save", 1, func() error { return h.Save(ctx, []byte("3")) })
			costs(first, "Take", 1, take(id))
			costs(first, "Touch", 1, func() error { return h.Touch(ctx) })
			costs(first, "Load", 1, func() (err error) { read, err = st.Load(ctx, id, Terms{}); return err })
			costs(first, "SaveLoaded", 1, func() error {
				_, err := st.SaveLoaded(ctx, id, read, text("4"), Terms{})
				return err
			})
			costs(first, "Take", 1, take(id))
			costs(first, "Renew", 2, func() error { return h.Renew(ctx, next, []byte("5")) })
			costs(first, "ListUser", 2, func() error { _, err := st.ListUser(ctx, user, Terms{}); return err })
			costs(first, "End", 1, func() error { return st.End(ctx, next) })
			costs(first, "EndUser of nobody", 1, func() error { _, err := st.EndUser(ctx, user); return err })
		}
		for n := range 300 {
			login(t, st, "ann", n)
		}
		p.Forget()
		ended, err := st.EndUser(t.Context(), "ann")
		scripts := slices.DeleteFunc(p.Commands(), func(cmd redistest.Command) bool { return cmd.Name == "PEXPIRE" }) // in the background
		if len(ended) != 300 || err != nil || len(scripts) != 1 {
			t.Errorf("EndUser ended %d, %v, by %d commands", len(ended), err, len(scripts))
		}

	})
}
