package records

import (
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// If a user never returns, no key outlives the last session by more than an hour, however the sessions ended. If
// the user returns, no expired session stays on the list.
func TestNothingOfUsersIsLeft(t *testing.T) {
	t.Parallel()
	const days = 5 * 24 * time.Hour
	terms := Terms{TTL: 2 * time.Hour, Lifetime: 24 * time.Hour}
	redistest.InFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st, ctx := process(t, s), t.Context()
		for name, become := range map[string]func(h *Hold, id string) error{
			"it is saved":  func(h *Hold, _ string) error { return h.Save(ctx, []byte("2")) },
			"a new ID":     func(h *Hold, _ string) error { return h.Renew(ctx, idOf(st, "ann", 9), []byte("2")) },
			"a logout":     func(h *Hold, _ string) error { return h.Destroy(ctx) },
			"End":          func(h *Hold, id string) error { h.Release(ctx); return st.End(ctx, id) },
			"EndUser":      func(h *Hold, id string) error { h.Release(ctx); _, err := st.EndUser(ctx, "ann"); return err },
			"all but this": func(h *Hold, id string) error { h.Release(ctx); _, err := st.EndUser(ctx, "ann", id); return err },
		} {
			for _, longest := range []time.Duration{terms.Lifetime, days} {
				for n := range 50 { // one every hour
					record := Record{Data: []byte("1"), Created: time.Now(), User: "ann"}
					if n == 49 && longest == days {
						record.Own = &Times{Until: time.Now().Add(days)}
					}
					must(t, st.CreateRecord(ctx, idOf(st, "ann", 10+n), record, terms))
					lapse(time.Hour)
				}
				id := idOf(st, "ann", 59)
				tag, _, _ := cutTag(id)
				if n, _ := redis.Int(s.Do(t, "ZCARD", st.listKey(tag)), nil); n > 25 {
					t.Errorf("%s: %d sessions are on the list", name, n)
				}
				h, _, err := st.Take(ctx, id, terms)
				wantError(t, name+": Take", err, nil)
				wantError(t, name, become(h, id), nil)
				lapse(longest)
				if keys := s.Keys(t); len(keys) > 0 {
					t.Errorf("%s: %v later these keys are left: %q", name, longest, keys)
				}
			}
		}
	})
}
