package store_test

import (
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
)

// Uploads may hold a session for a minute, other requests for a moment. One of those
// that follows an upload in the same process is bound by its own MaxHold in every way:
// it is told, others have the session then, and it cannot save any more.
func TestMaxHoldOfAJoinedHoldEndsIt(t *testing.T) {
	t.Parallel()
	const maxHold, lease = 300 * time.Millisecond, 10 * time.Second
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		o := patient
		o.Lease = lease
		here, elsewhere := open(t, r, o), open(t, r, o)
		create(t, elsewhere, "0", store.Terms{})
		upload := take(t, here, store.Terms{MaxHold: time.Minute})
		joining := begin(t, here, store.Terms{LockWait: time.Minute, MaxHold: maxHold})
		inLine(t, here, 1)

		began := time.Now()
		save(t, upload, "upload")
		slow := joining.wait(t, "upload")
		toldLost(t, slow)
		if took := time.Since(began); took < maxHold/2 || took > lease/4 {
			t.Errorf("it was told after %v, its MaxHold is %v", took, maxHold)
		}

		began = time.Now()
		other := begin(t, elsewhere, store.Terms{LockWait: time.Minute})
		select {
		case <-other.done:
			save(t, other.wait(t, "upload"), "other")
		case <-time.After(lease / 4):
			t.Errorf("another process waits for the session since %v, though its holder is past its MaxHold", time.Since(began))
		}
		wantError(t, "Save after ErrLost", slow.Save(t.Context(), []byte("slow")), store.ErrLost)
		<-other.done
		wantData(t, elsewhere, "other")
	})
}
