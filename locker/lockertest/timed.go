package lockertest

import (
	"errors"
	"time"

	"github.com/a2139e8d/latchkey/locker"
)

// timed runs a check in which something short, a lease or a time-out, must outlast
// a few steps. On a machine that stalls it may not; f returns false then, which
// proves nothing, and is called again with another key and twice the time.
func (c *check) timed(what string, f func(key string, d time.Duration) bool) {
	c.Helper()
	for d := 50 * time.Millisecond; d < 5*time.Second; d *= 2 {
		key := what + " in " + d.String()
		if f(key, d) {
			return
		}
		c.stalls = append(c.stalls, key)
		c.forgetStalls()
	}
	c.Errorf("never happened: %s", what)
}

// forgetStalls makes all nodes forget what was called again. A slow one may do a part of it
// later, take the lock and not hear of its release.
func (c *check) forgetStalls() {
	for _, key := range c.stalls {
		c.forget(c.kind.Nodes, key)
	}
}

// isSlow reports whether an exchange took too long. Those of a check that is timed
// must be quick.
func isSlow(err error) bool { return errors.Is(err, locker.ErrUnavailable) }

// isLate reports whether an exchange took too long, or so long that it was repeated: a release
// that was done finds nobody then.
func isLate(err error) bool { return isSlow(err) || errors.Is(err, locker.ErrExpired) }

// stalled returns false, for a check that is timed, where an exchange took too
// long. Any other error is the check's.
func (c *check) stalled(err error) bool {
	c.Helper()
	if !isLate(err) {
		c.Fatal(err)
	}
	return false
}

// short are options for a lease that runs out.
func short(lease time.Duration) locker.Options {
	return with(func(o *locker.Options) { o.Lease, o.MaxHold, o.Timeout = lease, lease, lease/4 })
}

// hasty are options for exchanges that hang. The lease is so long that no lock of
// nobody's ends by itself during a check.
func hasty(timeout time.Duration) locker.Options {
	return with(func(o *locker.Options) { o.Lease, o.Timeout = 10*time.Minute, timeout })
}
