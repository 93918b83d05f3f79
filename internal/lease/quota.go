package lease

import "time"

// How long one process may pass a lock on among its own callers: long enough that a change of
// processes, some round trips and a message, does not count; short enough that others do not notice.
const (
	maxHolders = 33
	maxTime    = 10 * time.Millisecond
	// Others that are in no queue may wait all the same: programs that poll, or earlier
	// versions of this one. Now and then they have their chance, too.
	maxTimeAlone = time.Second
)

// A Quota is how much of that is used up.
type Quota struct {
	Began   time.Time // when the process asked for the lock
	Holders int       // that have had it since
	Others  bool      // other processes wait for it, as of the last round trip
}

// Over reports whether the lock is to be released although callers of this process wait.
func (q Quota) Over(now time.Time) bool {
	if q.Others {
		return q.Holders >= maxHolders || now.Sub(q.Began) >= maxTime
	}
	return now.Sub(q.Began) >= maxTimeAlone
}
