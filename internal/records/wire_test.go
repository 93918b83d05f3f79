package records

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// P10, P14: each operation costs one round trip, except Renew, which has two IDs, the list of a user, and the
// take of an ID without a session. A user's session costs as many as a guest's.
func TestRequests(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st, p := tapped(t, s, patient)
		ctx, short := t.Context(), Terms{TTL: patient.Lease}
		for round, user := range []string{"", "ann", "", "bob"} { // the first two rounds load the scripts
			id := func(n int) string {
				if user == "" {
					return fmt.Sprintf("%d of %d", n, round)
				}
				return idOf(st, user, n)
			}
			begun := fmt.Sprint("begun in ", round)
			var h *Hold
			var read Record
			takes := func(id string, terms Terms) func() error {
				return func() (err error) { h, _, err = st.Take(ctx, id, terms); return err }
			}
			for _, step := range []struct {
				name  string
				trips int
				do    func() error
				want  error
			}{
				{"Create", 1, func() error { return st.Create(ctx, begun, []byte("1"), Terms{}) }, nil},
				{"Take", 1, takes(begun, Terms{}), nil},
				{"a login", 2, func() error { h.Record.User = user; return h.Renew(ctx, id(1), []byte("2")) }, nil},
				{"Take", 1, takes(id(1), Terms{}), nil},
				{"Save", 1, func() error { return h.Save(ctx, []byte("3")) }, nil},
				{"Take with a TTL no longer than a lease", 1, takes(id(1), short), nil},
				{"Touch", 1, func() error { return h.Touch(ctx) }, nil},
				{"Load", 1, func() (err error) { read, err = st.Load(ctx, id(1), Terms{}); return err }, nil},
				{"SaveLoaded", 1, func() error { _, err := st.SaveLoaded(ctx, id(1), read, text("4"), Terms{}); return err }, nil},
				{"Take", 1, takes(id(1), Terms{}), nil},
				{"Renew", 2, func() error { return h.Renew(ctx, id(2), []byte("5")) }, nil},
				{"Take of an ended ID", 2, takes(id(1), Terms{}), ErrGone},
				{"Take", 1, takes(id(2), Terms{}), nil},
				{"Destroy", 1, func() error { return h.Destroy(ctx) }, nil},
				{"Take of an unknown ID", 2, takes(id(3), Terms{}), ErrNotFound},
			} {
				p.Forget()
				wantError(t, step.name, step.do(), step.want)
				if got := p.RoundTrips(); got != step.trips && round > 1 {
					t.Errorf("%s of user %q costs %d round trips, want %d: %q", step.name, user, got, step.trips, p.Commands())
				}
			}
		}
	})
}

// P10, P14: ending a user's sessions costs one round trip, whether it ends one or all, whatever their number. The
// list costs two.
func TestRequestsOfUsers(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st, p := tapped(t, s, patient)
		endAll(t, st)
		_ = st.End(t.Context(), idOf(st, "ann", 0))
		wantListed(t, st, "ann") // from now on Redis has the scripts
		login(t, st, "bob", 1)
		for n := range 301 {
			login(t, st, "ann", n)
		}
		for what, tt := range map[string]struct {
			trips int
			do    func() error
		}{
			"ListUser": {2, func() error { _, err := st.ListUser(t.Context(), "bob", Terms{}); return err }},
			"End":      {1, func() error { return st.End(t.Context(), idOf(st, "ann", 300)) }},
		} {
			p.Forget()
			wantError(t, what, tt.do(), nil)
			if got := p.RoundTrips(); got != tt.trips {
				t.Errorf("%s costs %d round trips, want %d: %q", what, got, tt.trips, p.Commands())
			}
		}
		lapse(time.Minute)
		p.Forget()
		ended, err := st.EndUser(t.Context(), "ann")
		scripts := slices.DeleteFunc(p.Commands(), func(cmd redistest.Command) bool { return cmd.Name == "PEXPIRE" }) // in the background
		if len(ended) != 300 || err != nil || len(scripts) != 1 {
			t.Errorf("EndUser ended %d, %v, by %d commands", len(ended), err, len(scripts))
		}
	})
}
