package main

import (
	"time"

	"github.com/a2139e8d/latchkey/locker"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/gomodule/redigo/redis"
)

// The values of -lock.
const (
	lockNone      = "none"
	lockSpin      = "spin"
	lockTimestamp = "timestamp"
	lockLease     = "lease"
	lockRedlock   = "redlock"
	lockAll       = "all" // each in turn, for -check
)

var locks = []string{lockSpin, lockTimestamp, lockLease, lockRedlock, lockNone}

// lockIs says what a value of -lock means, for the page.
var lockIs = map[string]string{
	lockSpin:      "Latchkey's sessions as they are",
	lockTimestamp: "of package locker, around the handlers",
	lockLease:     "of package locker, around the handlers",
	lockRedlock:   "of package locker, around the handlers",
	lockNone:      "“With the lock” above uses spin, Latchkey's own",
}

// newLocker returns the lock of package locker that c names.
func newLocker(c config, pools []*redis.Pool) locker.Locker {
	o := locker.Options{Lease: c.lease, Wait: c.lockWait, MaxHold: c.maxHold(), MaxWaiters: c.maxWaiters()}
	switch c.lock {
	case lockTimestamp:
		return locker.NewTimestamp(pools[0], o)
	case lockRedlock:
		o.Timeout = c.lease / 4 // the longest allowed: a hundred requests at once take time
		return locker.NewRedlock(pools, o)
	default:
		o.Backoff = locker.Backoff{Min: pollEvery, Max: pollEvery}
		client := transport.NewRedigo(pools[0], locker.DefaultTimeout)
		return locker.New(polled{locker.SpinAlgorithm(client)}, o)
	}
}

// pollEvery is the longest pause between two tries for the lease lock.
const pollEvery = 10 * time.Millisecond

// polled hides the queue of an algorithm, so that only single tries are left. Its lock is a key with an owner
// and a lease, like the spin lock. But waiting processes do not queue, and are not notified: each process
// tries again every few milliseconds, until the lock is free or Wait has passed. The processes are not served
// in order; the callers of one process are.
type polled struct{ locker.Algorithm }
