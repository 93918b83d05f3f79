package store

import (
	"cmp"
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/locker"
)

// Terms are the rules that a session is kept by. Zero fields mean the defaults.
type Terms struct {
	// TTL is the idle timeout: a session that no request comes for is gone
	// after it. Default 30 min.
	TTL time.Duration
	// Lifetime is the absolute timeout, from the session's creation, however
	// busy it is. Default 24 h. It must not be shorter than TTL.
	Lifetime time.Duration
	// LockWait is the longest a request waits for its session. Default 10 s.
	LockWait time.Duration
	// MaxHold is the longest a request may hold its session. Default 1 min. With a
	// Locker of one's own it must be 0, as must MaxWaiters.
	MaxHold time.Duration
	// MaxWaiters is how many requests may wait for one session in one process. Default 128.
	MaxWaiters int
	// MaxBytes is the largest record. Default 1 MiB.
	MaxBytes int
	// Label says what the session is held for, to those who wait for it. It is
	// stored in Redis with the session. See [locker.WithLabel].
	Label string
}

// Defaults of [Terms]; the others are those of package locker.
const (
	DefaultTTL      = 30 * time.Minute
	DefaultLifetime = 24 * time.Hour
	DefaultMaxBytes = 1 << 20
)

// Check returns the first rule that t breaks. All of them can be checked before the first
// request.
func (s *Store) Check(t Terms) error {
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
	if s.options.Locker != nil {
		return checkLocker(t)
	}
	return nil
}

// checkLocker reports what t says about a lock that has options of its own.
func checkLocker(t Terms) error {
	const rule = "it must be 0 with a Locker of one's own, whose options say it instead"
	if t.MaxHold != 0 {
		return fmt.Errorf("MaxHold is %v: %s", t.MaxHold, rule)
	}
	if t.MaxWaiters != 0 {
		return fmt.Errorf("MaxWaiters is %d: %s", t.MaxWaiters, rule)
	}
	return nil
}

// terms returns t with its zero fields filled in, or why a request must not take a session.
func (s *Store) terms(t Terms) (Terms, error) {
	switch {
	case s.closed.Load():
		return t, lease.ErrClosed
	case t.LockWait < 0, t.MaxHold < 0, t.MaxHold > 0 && t.MaxHold < time.Millisecond, t.MaxWaiters < 0:
		if t.LockWait == locker.NoWait {
			t.LockWait = 0 // it is permitted here
		}
		return t, s.Check(t)
	case s.options.Locker != nil:
		return t.withDefaults(), checkLocker(t)
	default:
		return t.withDefaults(), nil
	}
}

// withDefaults returns t with its zero fields filled in.
func (t Terms) withDefaults() Terms {
	t.TTL = cmp.Or(t.TTL, DefaultTTL)
	t.Lifetime = cmp.Or(t.Lifetime, DefaultLifetime)
	t.LockWait = cmp.Or(t.LockWait, locker.DefaultWait)
	t.MaxBytes = cmp.Or(t.MaxBytes, DefaultMaxBytes)
	return t
}

// expiry returns in how many milliseconds a record that was created then is to
// expire if it is written now: at whichever timeout comes first.
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

// held returns the error that package locker has for a wait.
func held(o lease.Owner, d time.Duration) error {
	return &locker.HeldError{Owner: locker.Owner(o), For: d}
}
