package locker

import (
	"math"
	"time"
)

// A Policy is how to wait for a lock that another process holds.
type Policy int

const (
	// Poll tries again after the pauses that Options.Backoff tells, so that it
	// notices when the holder gives the lock back.
	Poll Policy = iota
	// LeaseEnd sleeps until the holder's lease ends and tries then. Where that
	// would be too late, Lock gives up at once. It suits long jobs: whoever comes
	// second learns that in one exchange, and nobody polls for an hour. A
	// release is noticed late, or not at all, except by callers of the holder's
	// own process.
	LeaseEnd
)

// NoWait as Options.Wait means a single try.
const NoWait time.Duration = 1

// forever is the Left of a lock that has no end.
const forever time.Duration = math.MaxInt64

// next returns for how long to sleep before the next try, where the holder's
// lease lasts for left more and the caller can wait for patience. It returns
// false where there is no point in waiting. random is as in [Backoff.Delay].
func (o Options) next(try int, left, patience time.Duration, random float64) (time.Duration, bool) {
	pause := o.Backoff.Delay(try, random)
	if o.Policy == Poll || left <= 0 {
		return pause, true
	}
	if left > patience {
		return 0, false
	}
	// What is left is cut to whole milliseconds, and a crowd that slept until
	// the same moment should not come back at once.
	return left + min(time.Millisecond+pause, (patience-left)/2), true
}
