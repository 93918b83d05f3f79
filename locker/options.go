package locker

import (
	"fmt"
	"time"
)

// Options say how to lock. The zero value means the defaults.
type Options struct {
	// Lease is how long the lock outlives a holder that was killed. A living
	// one has it extended every third of it. Default 10 s, at least 1 ms.
	Lease time.Duration
	// Wait is the longest time to wait for the lock; NoWait is a single try. An
	// exchange that is under way by then may take Timeout more; with Redlock,
	// it and the release after it. Default 10 s.
	Wait time.Duration
	// MaxHold is how long a lease is extended. Then it runs out, and the holder
	// is told by Lease.Lost. Default 1 min, or Lease where that is longer.
	MaxHold time.Duration
	// MaxWaiters is how many callers of this process may wait for one key; the
	// holder does not count. Default 128.
	MaxWaiters int
	// Backoff is the pause between two tries while another process holds the
	// lock, where that process cannot tell when it is free: with Spin only if
	// Redis does not permit it. Default 1 ms, doubling up to 16 ms; with Redlock
	// 10 ms up to 200 ms.
	//
	// With 100 callers that polled for one lock, each to hold it for 1 ms, pauses
	// of 1 to 16 ms served 509 a second; fixed ones of 1, 10 and 200 ms served 244,
	// 349 and 164. Without a pause it was 163, since Redis was so busy that a
	// release took 30 times as long.
	Backoff Backoff
	// Policy is how to wait for a lock that another process holds. Default
	// Poll.
	Policy Policy
	// Timeout bounds each exchange with Redis, including the wait for a
	// connection. Default 2 s; with Redlock it is for each node, by default a
	// fiftieth of Lease, at least 10 ms.
	Timeout time.Duration
	// Label says what the locks are for, where [WithLabel] does not say it of one.
	Label string
	// LocalClock makes Timestamp go by the clock of this host instead of that
	// of Redis. It is for sharing locks with programs that do so, too; all
	// their clocks must then agree. The other locks do not look at it.
	LocalClock bool
}

// Defaults of [Options].
const (
	DefaultLease      = 10 * time.Second
	DefaultWait       = 10 * time.Second
	DefaultMaxHold    = time.Minute
	DefaultMaxWaiters = 128
	DefaultTimeout    = 2 * time.Second
)

// MaxKey is the length of the longest key, in bytes. Redis would take more, but
// such a key is a mistake.
const MaxKey = 1024

func checkKey(key string) error {
	if key == "" || len(key) > MaxKey {
		return fmt.Errorf("the key has %d bytes: it must have 1 to %d", len(key), MaxKey)
	}
	return nil
}

// withDefaults returns o with its zero fields filled in, or the first rule that
// o breaks.
func (o Options) withDefaults() (Options, error) {
	if err := o.check(); err != nil {
		return o, err
	}
	o.Lease = orElse(o.Lease, DefaultLease)
	o.Wait = orElse(o.Wait, DefaultWait)
	o.MaxHold = orElse(o.MaxHold, max(DefaultMaxHold, o.Lease))
	o.MaxWaiters = orElse(o.MaxWaiters, DefaultMaxWaiters)
	o.Timeout = orElse(o.Timeout, DefaultTimeout)
	o.Backoff = orElse(o.Backoff, Backoff{Min: time.Millisecond, Max: 16 * time.Millisecond})
	return o, nil
}

func (o Options) check() error {
	switch {
	case o.Lease < 0, o.Lease > 0 && o.Lease < time.Millisecond:
		return fmt.Errorf("Options.Lease is %v: it must be at least 1ms, or 0 for the default", o.Lease)
	case o.Wait < 0:
		return fmt.Errorf("Options.Wait is %v: it must not be negative", o.Wait)
	case o.MaxHold < 0, o.MaxHold > 0 && o.MaxHold < time.Millisecond:
		return fmt.Errorf("Options.MaxHold is %v: it must be at least 1ms, or 0 for the default", o.MaxHold)
	case o.MaxWaiters < 0:
		return fmt.Errorf("Options.MaxWaiters is %d: it must not be negative", o.MaxWaiters)
	case o.Timeout < 0:
		return fmt.Errorf("Options.Timeout is %v: it must not be negative", o.Timeout)
	case o.Backoff.Min < 0, o.Backoff.Max < o.Backoff.Min:
		return fmt.Errorf("Options.Backoff is %v to %v: Min must not be negative, nor Max below Min", o.Backoff.Min, o.Backoff.Max)
	case o.Policy != Poll && o.Policy != LeaseEnd:
		return fmt.Errorf("Options.Policy is %d: it must be Poll or LeaseEnd", o.Policy)
	}
	return nil
}

// orElse returns v, or other where v is zero.
func orElse[T comparable](v, other T) T {
	var zero T
	if v == zero {
		return other
	}
	return v
}
