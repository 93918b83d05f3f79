package store

import (
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// P10: what each operation costs: take and save are one round trip each, and so is everything else
// but Renew, which has two ids, and the take of an id that has no session.
func TestRequests(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		learn(t, s)
		st, p := tapped(t, s, patient)
		ctx := t.Context()
		var h *Hold
		taken := func(id string) func() error {
			return func() (err error) { h, err = st.Take(ctx, id, Terms{}); return err }
		}
		for _, step := range []struct {
			name  string
			trips int
			do    func() error
			want  error
		}{
			{"Create", 1, func() error { return st.Create(ctx, theID, []byte("1"), Terms{}) }, nil},
			{"Take", 1, taken(theID), nil},
			{"Save", 1, func() error { return h.Save(ctx, []byte("2")) }, nil},
			{"Load", 1, func() error { _, err := st.Load(ctx, theID, Terms{}); return err }, nil},
			{"Take", 1, taken(theID), nil},
			{"Touch", 1, func() error { return h.Touch(ctx) }, nil},
			{"Take", 1, taken(theID), nil},
			{"Renew", 2, func() error { return h.Renew(ctx, newID, []byte("3")) }, nil},
			{"Take of an ended id", 2, taken(theID), ErrGone},
			{"Take", 1, taken(newID), nil},
			{"Destroy", 1, func() error { return h.Destroy(ctx) }, nil},
			{"Take of an unknown id", 2, taken("unknown"), ErrNotFound},
		} {
			p.Forget()
			wantError(t, step.name, step.do(), step.want)
			if got := p.RoundTrips(); got != step.trips {
				t.Errorf("%s costs %d round trips, want %d: %q", step.name, got, step.trips, p.Commands())
			}
		}
	})
}
