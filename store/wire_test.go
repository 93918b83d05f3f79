package store

import (
	"errors"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// P10: what each operation costs: take and save are one round trip each, and so is everything else
// but Renew, which has two ids, and the take of an id that has no session.
func TestRequests(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		wantCosts(t, s, patient, map[string]int{
			"Create": 1, "Take": 1, "Save": 1, "Touch": 1, "Load": 1, "Renew": 2, "Destroy": 1,
			"Take of an ended id": 2, "Take of an unknown id": 2,
		})
	})
}

// wantCosts counts the round trips to the Redis with the records.
func wantCosts(t *testing.T, s *redistest.Server, o Options, want map[string]int) {
	t.Helper()
	learn(t, s)
	st, p := tapped(t, s, o)
	ctx := t.Context()
	var h *Hold
	taken := func(id string) func() error {
		return func() (err error) { h, err = st.Take(ctx, id, Terms{}); return err }
	}
	for _, step := range []struct {
		name string
		do   func() error
		want error
	}{
		{"Create", func() error { return st.Create(ctx, theID, []byte("1"), Terms{}) }, nil},
		{"Take", taken(theID), nil},
		{"Save", func() error { return h.Save(ctx, []byte("2")) }, nil},
		{"Load", func() error { _, err := st.Load(ctx, theID, Terms{}); return err }, nil},
		{"Take", taken(theID), nil},
		{"Touch", func() error { return h.Touch(ctx) }, nil},
		{"Take", taken(theID), nil},
		{"Renew", func() error { return h.Renew(ctx, newID, []byte("3")) }, nil},
		{"Take of an ended id", taken(theID), ErrGone},
		{"Take", taken(newID), nil},
		{"Destroy", func() error { return h.Destroy(ctx) }, nil},
		{"Take of an unknown id", taken("unknown"), ErrNotFound},
	} {
		p.Forget()
		if err := step.do(); !errors.Is(err, step.want) {
			t.Fatalf("%s: %v, want %v", step.name, err, step.want)
		}
		if got := p.RoundTrips(); got != want[step.name] {
			t.Errorf("%s costs %d round trips, want %d: %q", step.name, got, want[step.name], p.Commands())
		}
	}
}
