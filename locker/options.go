package locker

import (
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
)

// Options say how to lock. The zero value means the defaults.
type Options struct {
	// Lease is how long the lock outlives a holder that was killed. A live holder extends it every third of that
	// time. Default 10 s, at least 1 ms; with Redlock at least 10 ms.
	Lease time.Duration
	// Wait is the longest time to wait for the lock; NoWait is a single try. If a round trip is under way at the end
	// of that time, it may take an eighth of Timeout more; with Redlock, so may the release after it. If Redis does not
	// reply, leaving the queue may take a quarter of Timeout. The first round trip has all of Timeout. Default 10 s.
	//
	// Wait is for a lock that is held, and not for an outage: a round trip that fails ends the wait of its caller. If
	// Redis did not reply in time, that also ends the wait of the other callers of this process for that key.
	Wait time.Duration
	// MaxHold is how long a lease is extended. Then it expires, and Lease.Lost notifies the holder. Default 1 min,
	// or Lease if that is longer.
	MaxHold time.Duration
	// MaxWaiters is how many callers of this process may wait for one key, not counting the holder. Default
	// 128.
	MaxWaiters int
	// Backoff is the pause between two tries while another process holds the lock, if this process cannot be
	// notified of its release: with Spin only if Redis does not permit that. Default 1 ms, doubling up to 16
	// ms; with Redlock 10 ms up to 200 ms. When 100 callers polled for one lock, to hold it for 1 ms each, the
	// default served 509 a second. Fixed pauses of 1, 10 and 200 ms served 244, 349 and 164. No pauses served
	// 163, since Redis was too busy.
	Backoff Backoff
	// Policy is how to wait for a lock that another process holds. Default Poll.
	Policy Policy
	// Timeout bounds each round trip to Redis, including the wait for a connection. Default 2 s; with Redlock it is
	// for each node, by default a fiftieth of Lease, at least 10 ms, but at most a quarter of Lease: set it if Lease is 1
	// or 2 s. With [New], set it to the timeout of the client: it bounds a client that is more patient, by the context of
	// the round trip. If it is 0, the timeout of the client bounds each try, and a round trip is tried again for 2 s at
	// most.
	Timeout time.Duration
	// Label describes what the locks are for. [WithLabel] overrides it.
	Label string
	// LocalClock makes Timestamp use the clock of this host instead of Redis's clock. It is for sharing locks
	// with programs that use their host's clock; all these clocks must agree. An Unlock that reaches Redis after
	// the lease has expired may release the lock of another such program. The other locks ignore LocalClock.
	LocalClock bool
}

// A Policy is how to wait for a lock that another process holds.
type Policy int

const (
	// Poll waits for the release. The processes that wait for a Spin lock queue in Redis, and the lock's release
	// notifies the first of them. If that is not possible, and with the other locks, each process tries again after
	// the pauses of Options.Backoff.
	Poll Policy = iota
	// LeaseEnd sleeps until the holder's lease ends, and tries then. If that would be too late, Lock gives up
	// at once. LeaseEnd suits long jobs: the second caller gives up after one round trip, and does not poll for
	// an hour. Only callers of the holder's own process notice a release at once; others notice it late, or not
	// at all.
	LeaseEnd
)

// Backoff is how long to pause between tries: Min before the second try, twice as long before each further try,
// never more than Max. Each pause is shortened at random by up to half, so that callers that were refused
// together do not try again together.
type Backoff struct{ Min, Max time.Duration }

// NoWait as Options.Wait means a single try.
const NoWait time.Duration = 1

// DefaultTimeout is the default of Options.Timeout, for clients that should have the same timeout.
const DefaultTimeout = 2 * time.Second

// MaxKey is the length of the longest key in bytes. Redis accepts longer keys, but such a key is a mistake.
const MaxKey = 1024

// engine returns o as package lease needs it.
func (o Options) engine() lease.Options {
	return lease.Options{
		Lease:      o.Lease,
		Wait:       o.Wait,
		MaxHold:    o.MaxHold,
		Timeout:    o.Timeout,
		MaxWaiters: o.MaxWaiters,
		Backoff:    lease.Backoff(o.Backoff),
		Policy:     lease.Policy(o.Policy),
		Label:      o.Label,
	}
}

// check returns the first rule that o breaks.
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
	case o.Timeout < 0, o.Timeout > 0 && o.Timeout < time.Millisecond:
		return fmt.Errorf("Options.Timeout is %v: it must be at least 1ms, or 0 for the default", o.Timeout)
	case o.Backoff.Min < 0, o.Backoff.Max < o.Backoff.Min:
		return fmt.Errorf("Options.Backoff is %v to %v: Min must not be negative, nor Max below Min", o.Backoff.Min, o.Backoff.Max)
	case o.Policy != Poll && o.Policy != LeaseEnd:
		return fmt.Errorf("Options.Policy is %d: it must be Poll or LeaseEnd", o.Policy)
	}
	return nil
}
