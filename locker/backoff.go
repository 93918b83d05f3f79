package locker

import (
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
)

// A Policy is how to wait for a lock that another process holds.
type Policy int

const (
	// Poll tries again after the pauses of Options.Backoff, so that it notices when the
	// holder gives the lock back.
	Poll = Policy(lease.Poll)
	// LeaseEnd sleeps until the holder's lease ends and tries then. Where that
	// would be too late, Lock gives up at once. It suits long jobs: the second
	// caller learns that in one exchange, and nobody polls for an hour. A
	// release is noticed late, or not at all, except by callers of the holder's
	// own process.
	LeaseEnd = Policy(lease.LeaseEnd)
)

// Backoff is how long to pause between tries: Min before the second try, twice
// as long before each further one, never more than Max. It is a value without
// state, so one Backoff serves any number of loops at once.
type Backoff struct {
	Min, Max time.Duration
}

// Delay returns the pause after the given try, counted from 0. random in [0, 1)
// shortens it to between half and all of its length, so that contenders that
// were turned away together do not come back together.
func (b Backoff) Delay(try int, random float64) time.Duration {
	return lease.Backoff(b).Delay(try, random)
}
