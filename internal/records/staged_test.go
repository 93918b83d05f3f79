package records

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// large returns data whose record is staged.
func large(text string) string { return text + strings.Repeat(" ", stagedFrom) }

// stagedKeys returns the keys of staged records, none of which stays for more than a minute.
func stagedKeys(t *testing.T, s *redistest.Server) (keys []string) {
	t.Helper()
	for _, key := range s.Keys(t) {
		if strings.HasPrefix(key, theRecord+".new.") {
			keys = append(keys, key)
			wantExpiry(t, s, key, time.Minute)
		}
	}
	return keys
}

// A large record is sent ahead of the script, in the same write. Afterwards only the record is left, whatever was
// at its staged key before.
func TestLargeRecordIsStaged(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		learn(t, s)
		st, p := tapped(t, s, patient)
		create(t, process(t, s), "0")
		for _, data := range []string{large("1"), strings.Repeat("x", 400<<10)} {
			h := take(t, st)
			s.Do(t, "LPUSH", theRecord+".new."+h.revision, "x")
			p.Forget()
			save(t, h, data)
			for _, cmd := range p.Commands() {
				if runs(cmd, commitScript) && len(strings.Join(cmd.Args, "")) > 1000 {
					t.Error("the record is an argument of the script")
				}
			}
			if n := p.RoundTrips(); n != 1 {
				t.Errorf("%d bytes are saved in %d round trips", len(data), n)
			}
			wantData(t, s, data)
			wantExpiry(t, s, theRecord, DefaultTTL)
			if got := s.Keys(t); !slices.Equal(got, []string{theRecord}) {
				t.Errorf("the keys are %q", got)
			}
		}
	})
}

// The staged record is gone when the script runs: it was evicted, or SET was lost in a failover. The session is
// unchanged and free, even if SET is done after the script, or both are done again.
func TestStagedRecordIsGone(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		learn(t, s)
		st, p := tapped(t, s, patient)
		create(t, process(t, s), "before")
		p.Forget()
		h := take(t, st)
		taken := p.Commands()
		p.Forget()
		p.Inject(func(cmd redistest.Command) redistest.Fault {
			if runs(cmd, commitScript) {
				for _, key := range stagedKeys(t, s) {
					s.Do(t, "DEL", key)
				}
			}
			return redistest.Pass
		})
		err := h.Save(t.Context(), []byte(large("after")))
		wantError(t, "Save", err, ErrUnavailable)
		wantMessage(t, err, []string{"no such key"})
		wantData(t, s, "before")
		wantFree(t, s)

		p.Inject(nil)
		late := p.Commands()
		again(t, s, late[0])
		wantData(t, s, "before")
		if len(stagedKeys(t, s)) != 1 {
			t.Error("SET has staged nothing")
		}
		save(t, take(t, st), large("next"))
		again(t, s, late...)
		wantData(t, s, large("next"))
		again(t, s, append(taken, late...)...) // now its token has the lock again, but the record is another
		wantData(t, s, large("next"))
		wantFree(t, s)
		if keys := stagedKeys(t, s); keys != nil {
			t.Errorf("a staged record is left: %q", keys)
		}
	})
}

// The script is lost with all its repetitions, so the staged record is never read.
func TestStagedButNotCommitted(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		learn(t, s)
		st, p := tapped(t, s, patient)
		create(t, process(t, s), "before")
		h := take(t, st)
		p.Inject(func(cmd redistest.Command) redistest.Fault {
			if runs(cmd, commitScript) {
				return redistest.DropCommand
			}
			return redistest.Pass
		})
		p.Forget()
		wantError(t, "Save", h.Save(t.Context(), []byte(large("after"))), ErrUnavailable)
		p.Inject(nil)
		if len(stagedKeys(t, s)) != 1 {
			t.Error("nothing is staged")
		}
		wantData(t, s, "before")
		next := take(t, process(t, s)) // by now the abandoned lock was swept
		if got := string(next.Record.Data); got != "before" {
			t.Errorf("the next request has read %q", got)
		}
		must(t, next.Destroy(t.Context()))
		again(t, s, p.Commands()...)
		wantGone(t, s, st)
		if keys := stagedKeys(t, s); keys != nil {
			t.Errorf("a staged record is left: %q", keys)
		}
	})
}

// While a record waits between its SET and its script, all earlier commands are done again. None of them replaces
// the record.
func TestLateRecordIsNotMistakenForTheNext(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		learn(t, s)
		st, p := tapped(t, s, patient)
		create(t, process(t, s), "0")
		var late []redistest.Command
		p.Inject(func(cmd redistest.Command) redistest.Fault {
			if runs(cmd, commitScript) {
				again(t, s, late...)
				late = append(late, p.Commands()...)
				p.Forget()
			}
			return redistest.Pass
		})
		for _, data := range []string{"1", "2", "3", "4"} {
			save(t, take(t, st), large(data))
			wantData(t, s, large(data))
			wantFree(t, s)
		}
	})
}
