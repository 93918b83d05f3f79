package store

import (
	"fmt"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// Every first reply to a commit is lost, and yet each is stored exactly once.
func TestRepeatedCommitIsStoredOnce(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		learn(t, s)
		st, p := tapped(t, s, patient)
		create(t, st, "0")
		odd := false
		p.Inject(func(cmd redistest.Command) redistest.Fault {
			if runs(cmd, commitScript) {
				if odd = !odd; odd {
					return redistest.DropReply
				}
			}
			return redistest.Pass
		})
		const rounds = 10
		for range rounds {
			increment(t, st)
		}
		wantData(t, s, fmt.Sprint(rounds))
	})
}

// When the repetition comes, another may have built on what was stored. Then it
// is not known any more that it was, and the answer is that of a lost lock, which says that. The
// other's record is untouched.
func TestRepeatedCommitAfterAnotherWrote(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		learn(t, s)
		st, p := tapped(t, s, patient)
		other := process(t, s)
		create(t, st, "0")
		h := take(t, st)
		commits := 0
		p.Inject(func(cmd redistest.Command) redistest.Fault {
			if !runs(cmd, commitScript) {
				return redistest.Pass
			}
			if commits++; commits == 1 {
				return redistest.DropReply
			}
			increment(t, other)
			return redistest.Pass
		})
		err := h.Save(t.Context(), []byte("1"))
		wantError(t, "Save", err, ErrLost)
		wantError(t, "Save", err, ErrUnavailable)
		wantData(t, s, "2")
	})
}
