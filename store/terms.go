package store

import (
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/locker"
)

// Terms are the rules that a session is kept by. Zero fields mean the defaults.
type Terms struct {
	// TTL is the idle time-out: a session that no request comes for is gone
	// after it. Default 30 min.
	TTL time.Duration
	// Lifetime is the absolute time-out, from the session's creation, however
	// busy it is. Default 24 h. It must not be shorter than TTL.
	Lifetime time.Duration
	// LockWait is the longest a request waits for its session. Default 10 s.
	LockWait time.Duration
	// MaxHold is the longest a request may hold its session. Default 1 min.
	MaxHold time.Duration
	// MaxWaiters is how many requests may wait for one session in one process.
	// Default 128.
	MaxWaiters int
	// MaxBytes is the largest record. Default 1 MiB.
	MaxBytes int
	// Label says what the session is held for, to those who wait for it. It is
	// stored in Redis beside the session. See [locker.WithLabel].
	Label string
}

// Defaults of [Terms]; the others are those of package locker.
const (
	DefaultTTL      = 30 * time.Minute
	DefaultLifetime = 24 * time.Hour
	DefaultMaxBytes = 1 << 20
)

// Check returns the first rule that t breaks.
func (t Terms) Check() error {
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"TTL", t.TTL}, {"Lifetime", t.Lifetime}, {"LockWait", t.LockWait}, {"MaxHold", t.MaxHold}} {
		if d.value < 0 || d.value > 0 && d.value < time.Millisecond {
			return fmt.Errorf("%s is %v: it must be at least 1ms, or 0 for the default", d.name, d.value)
		}
	}
	for _, n := range []struct {
		name  string
		value int
	}{{"MaxWaiters", t.MaxWaiters}, {"MaxBytes", t.MaxBytes}} {
		if n.value < 0 {
			return fmt.Errorf("%s is %d: it must not be negative", n.name, n.value)
		}
	}
	if d := t.withDefaults(); d.TTL > d.Lifetime {
		return fmt.Errorf("TTL is %v and Lifetime %v: a session must be allowed to live for as long as it may be idle", d.TTL, d.Lifetime)
	}
	return nil
}

func (t Terms) withDefaults() Terms {
	if t.TTL == 0 {
		t.TTL = DefaultTTL
	}
	if t.Lifetime == 0 {
		t.Lifetime = DefaultLifetime
	}
	if t.LockWait == 0 {
		t.LockWait = locker.DefaultWait
	}
	if t.MaxBytes == 0 {
		t.MaxBytes = DefaultMaxBytes
	}
	return t
}

// After returns t for a request that has waited for its session before, for so long:
// it may wait for what is left of LockWait. Once that is used up it makes a single
// try, or none with a Locker of one's own.
func (t Terms) After(waited time.Duration) Terms {
	t = t.withDefaults()
	t.LockWait = max(t.LockWait-waited, locker.NoWait)
	return t
}

// expiry returns in how many milliseconds a record that was created then is to
// expire if it is written now: at whichever time-out comes first.
func (t Terms) expiry(created, now time.Time) int64 {
	left := created.Add(t.Lifetime).Sub(now)
	return max(1, min(t.TTL, left).Milliseconds())
}

// outlived returns the Unix ms at or before which a record must have been created to
// have reached its lifetime now.
func (t Terms) outlived(now time.Time) int64 { return now.Add(-t.Lifetime).UnixMilli() }

// expired reports whether a record that was created then has reached its lifetime.
func (t Terms) expired(created, now time.Time) bool {
	return !created.Add(t.Lifetime).After(now)
}

// lock returns how to lock a record by these terms.
func (s *Store) lock(t Terms) locker.Options {
	return locker.Options{
		Lease:      s.options.Lease,
		Wait:       t.LockWait,
		MaxHold:    t.MaxHold,
		MaxWaiters: t.MaxWaiters,
		Timeout:    s.options.Timeout,
		Label:      t.Label,
	}
}
