package main

import (
	"time"

	"github.com/a2139e8d/latchkey/locker"
	"github.com/gomodule/redigo/redis"
)

// The ways to guard a session.
const (
	lockNone      = "none"
	lockSpin      = "spin"
	lockTimestamp = "timestamp"
	lockLease     = "lease"
	lockRedlock   = "redlock"
	lockAll       = "all" // one after the other, for -check
)

var locks = []string{lockSpin, lockTimestamp, lockLease, lockRedlock, lockNone}

// newLocker returns the lock that c names, or nil for the one that lies beside
// the record, which package store has itself.
func newLocker(c config, pools []*redis.Pool) locker.Locker {
	o := locker.Options{Lease: c.lease, Wait: c.lockWait, MaxHold: c.maxHold(), MaxWaiters: c.maxWaiters()}
	switch c.lock {
	case lockTimestamp:
		return locker.NewTimestamp(pools[0], o)
	case lockLease: // asks every 10 ms whether the lease is over
		o.Backoff = locker.Backoff{Min: 10 * time.Millisecond, Max: 10 * time.Millisecond}
		return locker.NewSpin(pools[0], o)
	case lockRedlock:
		return locker.NewRedlock(pools, o)
	default:
		return nil
	}
}
