package lease

import "time"

// How long a process may pass a lock on among its own callers: long enough that the cost of a change of processes, some
// round trips and a message, does not matter, and short enough that other processes do not notice.
const (
	maxHolders = 33
	maxTime    = 10 * time.Millisecond
	// Other processes may wait without being in the queue: programs that poll, or earlier versions of this one. They
	// get a chance after this time.
	maxTimeAlone = time.Second
)

// A Quota is for how long, and for how many holders, a process has kept one lock.
type Quota struct {
	Began   time.Time // when the process asked for the lock
	Holders int       // how many holders have had the lock since
	Others  bool      // other processes wait for the lock, as of the last round trip
}

// Over reports whether the lock must be released although callers of this process wait.
func (q Quota) Over(now time.Time) bool {
	if q.Others {
		return q.Holders >= maxHolders || now.Sub(q.Began) >= maxTime
	}
	return now.Sub(q.Began) >= maxTimeAlone
}
