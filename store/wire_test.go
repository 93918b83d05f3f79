package store

import (
	"testing"

	"github.com/a2139e8d/latchkey/testdata/redistest"
)

// What each operation costs: the number of requests on the wire, with a lock
// beside the record and with one from elsewhere.
func TestRequests(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		site                          func(*testing.T, func(*testing.T, *site))
		take, give, renew, load, none int
	}{
		"beside": {besideRecord, 1, 1, 2, 1, 1},
		// Its own two requests, for take and release, go to the other Redis.
		"elsewhere": {elsewhere, 2, 1, 2, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want.site(t, func(t *testing.T, s *site) {
				learn(t, s.Server)
				p := redistest.NewProxy(t, s.Server)
				st := s.open(p.Pool(t, 8), s.locks.Pool(t, 8), patient)
				ctx := t.Context()
				var h *Hold
				costs := func(what string, requests int, f func() error) {
					t.Helper()
					p.Forget()
					if err := f(); err != nil {
						t.Fatalf("%s: %v", what, err)
					}
					if got := p.Requests(); got != requests {
						t.Errorf("%s costs %d requests, want %d: %q", what, got, requests, p.Commands())
					}
				}
				taken := func() (err error) { h, err = st.Take(ctx, theID, Terms{}); return err }

				costs("Create", 1, func() error { return st.Create(ctx, theID, []byte("1"), Terms{}) })
				costs("Take", want.take, taken)
				costs("Save", want.give, func() error { return h.Save(ctx, []byte("2")) })
				costs("Load", want.load, func() error { _, err := st.Load(ctx, theID, Terms{}); return err })
				costs("Take", want.take, taken)
				if name == "beside" { // elsewhere Take has put the time-out off already
					costs("Touch", 1, func() error { return h.Touch(ctx) })
				} else {
					costs("Touch", 0, func() error { return h.Touch(ctx) })
				}
				costs("Take", want.take, taken)
				costs("Renew", want.renew, func() error { return h.Renew(ctx, newID, []byte("3")) })
				costs("Take of a renewed id", want.none, func() error {
					_, err := st.Take(ctx, theID, Terms{})
					wantError(t, "Take of a renewed id", err, ErrGone)
					return nil
				})
				costs("Take of an unknown id", want.none, func() error {
					_, err := st.Take(ctx, "unknown", Terms{})
					wantError(t, "Take of an unknown id", err, ErrNotFound)
					return nil
				})
			})
		})
	}
}

// A Redis that has lost its scripts is told them again, for one request more.
func TestScriptsAreSentWhereTheyAreNotKnown(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		p := redistest.NewProxy(t, s)
		st := New(p.Pool(t, 1), patient)
		for range 2 {
			s.Do(t, "SCRIPT", "FLUSH")
			for _, want := range []int{2, 1} {
				p.Forget()
				_, err := st.Load(t.Context(), theID, Terms{})
				wantError(t, "Load", err, ErrNotFound)
				if got := p.Requests(); got != want {
					t.Errorf("%d requests, want %d", got, want)
				}
			}
		}
	})
}
