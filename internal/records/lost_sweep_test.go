package records

import (
	"testing"
	"testing/synctest"
	"time"
)

// A server that lacks the lock, such as a replica that has not heard its master yet, says that it is lost. If the address
// then leads to a server that has it, the lock does not stay there: the sweep goes on for a lease.
func TestALostLockThatComesBackIsSwept(t *testing.T) {
	atDesk(patient, func(t *testing.T, d *desk) {
		h := take(t, d.st)
		token, _ := d.Get(t, theLock)
		d.Do(t, "DEL", theLock)
		wantError(t, "Save", h.Save(t.Context(), []byte("after")), ErrLost)
		synctest.Wait()
		d.Do(t, "SET", theLock, token, "PX", (10 * patient.Lease).Milliseconds())
		time.Sleep(2 * patient.Lease)
		synctest.Wait()
		d.wantQuiet(t, "0")
	})(t)
}
