package records

import (
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// A record that cannot be used never causes a panic. Take reports it, and holds the lock, so that the caller may
// replace the record, leave it, or end it. Load reports it.
func TestUnusableRecords(t *testing.T) {
	t.Parallel()
	small := Terms{MaxBytes: 100, GuestTTL: 20 * time.Minute}
	for name, tt := range map[string]struct {
		put  []any // the command that stores the record
		want error
	}{
		"empty":         {[]any{"SET", theRecord, ""}, ErrCorrupt},
		"garbage":       {[]any{"SET", theRecord, "\x00\xffgarbage"}, ErrCorrupt},
		"later version": {[]any{"SET", theRecord, `{"v":3,"s":"A","c":1,"d":{}}`}, ErrCorrupt},
		"a list":        {[]any{"LPUSH", theRecord, "x"}, ErrCorrupt},
		"too large": {[]any{"SET", theRecord,
			formatRecord(theRevision, time.Now(), []byte(strings.Repeat("x", 100)))}, ErrTooLarge},
		"large garbage": {[]any{"SET", theRecord, strings.Repeat("x", 1000)}, ErrTooLarge},
	} {
		t.Run(name, fakeTime(func(t *testing.T, s *redistest.Server) {
			ctx := t.Context()
			st := process(t, s)
			put := func() *Hold {
				t.Helper()
				s.Do(t, "FLUSHALL")
				s.Do(t, tt.put[0].(string), tt.put[1:]...)
				s.Do(t, "PEXPIRE", theRecord, time.Hour.Milliseconds())
				_, err := st.Load(ctx, theID, small)
				wantError(t, "Load", err, tt.want)
				h, _, err := st.Take(ctx, theID, small)
				wantError(t, "Take", err, tt.want)
				if h == nil {
					t.Fatal("Take gave no Hold")
				}
				if !s.Exists(t, theLock) {
					t.Error("Take left the session unlocked")
				}
				if h.Record.Data != nil || time.Since(h.Record.Created) > time.Minute {
					t.Errorf("Take read %+v", h.Record)
				}
				return h
			}

			save(t, put(), "new")
			wantData(t, s, "new")
			wantExpiry(t, s, theRecord, small.GuestTTL) // the session begins as a guest's
			wantFree(t, s)

			wantError(t, "Destroy", put().Destroy(ctx), nil)
			wantGone(t, s, st)

			put().Release(ctx)
			_, err := st.Load(ctx, theID, small)
			wantError(t, "Load after Release", err, tt.want)
			wantExpiry(t, s, theRecord, time.Hour) // it is left as it was
			wantFree(t, s)

			wantError(t, "Touch", put().Touch(ctx), nil)
			wantFree(t, s)

			// The fence also holds for a record that cannot be used.
			h := put()
			s.Do(t, "DEL", theLock)
			wantError(t, "Save without the lock", h.Save(ctx, []byte("x")), ErrLost)
		}))
	}
}
