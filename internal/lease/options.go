package lease

import (
	"cmp"
	"math"
	"time"
)

// Options are those of package locker, which documents and checks them.
type Options struct {
	Lease, Wait, MaxHold, Timeout time.Duration
	MaxWaiters                    int
	Backoff                       Backoff
	Policy                        Policy
	Label                         string
	Span                          time.Duration // by WithDefaults: for how long a lock is taken
}

// Defaults of [Options].
const (
	DefaultLease      = 10 * time.Second
	DefaultWait       = 10 * time.Second
	DefaultMaxHold    = time.Minute
	DefaultMaxWaiters = 128
	DefaultTimeout    = 2 * time.Second
)

const (
	MaxKey                = 1024          // bytes of the longest key
	NoWait  time.Duration = 1             // as Options.Wait, a single try
	forever time.Duration = math.MaxInt64 // the Left of a lock that has no end
)

// WithDefaults returns o with its zero fields filled in.
func (o Options) WithDefaults() Options {
	o.MaxHold = cmp.Or(o.MaxHold, max(DefaultMaxHold, o.Lease))
	o.Lease = cmp.Or(o.Lease, DefaultLease)
	o.Wait = cmp.Or(o.Wait, DefaultWait)
	o.MaxWaiters = cmp.Or(o.MaxWaiters, DefaultMaxWaiters)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.Span = WholeMillis(min(o.Lease, o.MaxHold))
	o.Backoff = cmp.Or(o.Backoff, Backoff{Min: time.Millisecond, Max: 16 * time.Millisecond})
	return o
}

// A Policy is how to wait for a lock that another process holds; see locker.Policy.
type Policy int

// The policies.
const (
	Poll Policy = iota
	LeaseEnd
)

// pause returns how long to sleep before the next try, if the holder's lease lasts for left more. It returns false if a
// caller that can wait for patience need not try again. random is as in Backoff.delay.
func (o Options) pause(try int, left, patience time.Duration, random float64) (time.Duration, bool) {
	d := o.Backoff.delay(try, random)
	switch {
	case o.Policy != LeaseEnd, left <= 0:
		return d, true
	case left > patience:
		return 0, false
	}
	// left is cut to whole milliseconds, and callers that slept until the same moment should not all try at once.
	return left + min(time.Millisecond+d, (patience-left)/2), true
}

// Backoff is how long to pause between tries; see locker.Backoff.
type Backoff struct{ Min, Max time.Duration }

// delay returns the pause after the given try, counted from 0. random in [0, 1) shortens it to between half and
// all of its length, so that callers that were turned away together do not come back together.
func (b Backoff) delay(try int, random float64) time.Duration {
	d := b.Min
	for ; try > 0 && d < b.Max; try-- {
		if d *= 2; d <= 0 { // Min is 0, or doubling overflowed
			d = b.Max
		}
	}
	d = min(d, b.Max)
	return d/2 + time.Duration(random*float64(d-d/2))
}
