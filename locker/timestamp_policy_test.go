package locker

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// With LeaseEnd, whoever finds a peer's lock that outlasts the wait learns that at
// once.
func TestTimestampLeaseEndGivesUp(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		p := newPeer(t, server, "k")
		p.lease = time.Hour
		p.take()
		o := patient
		o.Policy = LeaseEnd
		timestamp, proxy := newProxiedTimestamp(t, server, o)
		began := time.Now()
		_, err := timestamp.Lock(t.Context(), "k")
		if !errors.Is(err, ErrTimeout) {
			t.Error(err)
		}
		if waited := time.Since(began); waited > o.Wait/2 || proxy.Requests() != 1 {
			t.Errorf("it took %v and %d commands", waited, proxy.Requests())
		}
	})
}

// Otherwise it sleeps until the moment that the value tells, without another word to
// Redis.
func TestTimestampLeaseEndSleeps(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		o := patient
		o.Policy = LeaseEnd
		timestamp, proxy := newProxiedTimestamp(t, server, o)
		end := time.Now().Add(500 * time.Millisecond)
		server.Do(t, "SET", "k", strconv.FormatInt(end.UnixMilli(), 10)+".4")
		l := mustTake(t, timestamp, "k")
		if early := time.Until(end.Truncate(time.Millisecond)); early > 0 {
			t.Errorf("the lock was taken %v early", early)
		}
		if n := proxy.Requests(); n > 2 {
			t.Errorf("%d commands, want one before the end and one after it", n)
		}
		mustUnlock(t, l)
	})
}
