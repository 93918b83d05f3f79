package store

import (
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// The connection breaks with the SET of a take on its way. Another has the lock, so the caller
// waits, and gives up. Where SET comes after that, it leaves no lock.
func TestLateSetOfATakeThatGaveUpLeavesNoLock(t *testing.T) {
	t.Parallel()
	besideRecord(t, func(t *testing.T, s *site) {
		p := redistest.NewProxy(t, s.Server)
		st, other := s.open(p.Pool(t, 2), nil, patient), s.process(t)
		create(t, other, "0")
		holder := take(t, other)
		onceFor(t, p, takesLock, redistest.DropCommand)
		_, err := st.Take(t.Context(), theID, Terms{LockWait: 50 * time.Millisecond})
		wantError(t, "Take", err, ErrTimeout)
		save(t, holder, "1")
		wantFree(t, s)
		for _, cmd := range p.Commands() {
			if takesLock.is(cmd) {
				repeat(t, s, []redistest.Command{cmd})
			}
		}
		next, err := other.Take(t.Context(), theID, Terms{LockWait: patient.Lease / 10})
		if err != nil {
			t.Fatal(err)
		}
		save(t, next, "2")
	})
}
