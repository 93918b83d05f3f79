package store

import (
	"cmp"
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/locker"
)

// Terms are the rules that a session is kept by. Zero fields mean the defaults, except in
// [Store.Load]. They are not stored: what saves or touches a session sets its timeouts by the
// terms that it was taken with. So all who take a session should use the same.
type Terms struct {
	TTL      time.Duration // idle timeout: after it, an unused session is gone. Default 30 min.
	Lifetime time.Duration // absolute timeout, from the creation; not shorter than TTL. Default 24 h.
	LockWait time.Duration // the longest wait for the session. Default 10 s.
	// MaxHold is the longest a request may hold its session. Default 1 min. MaxWaiters is how
	// many requests may wait for one session in one process. Default 128. With a Locker of
	// one's own both must be 0.
	MaxHold    time.Duration
	MaxWaiters int
	MaxBytes   int // of the largest record. Default 1 MiB.
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

// Check returns the first rule that t breaks. It is for use before the first request.
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
	const rule = "it must be 0 with a Locker of one's own, whose options say it instead"
	switch {
	case s.options.Locker == nil:
		return nil
	case t.MaxHold != 0:
		return fmt.Errorf("MaxHold is %v: %s", t.MaxHold, rule)
	case t.MaxWaiters != 0:
		return fmt.Errorf("MaxWaiters is %d: %s", t.MaxWaiters, rule)
	}
	return nil
}

// terms returns t with its zero fields filled in, or why a request must not take a session.
func (s *Store) terms(t Terms) (_ Terms, err error) {
	if s.closed.Load() {
		return t, lease.ErrClosed
	}
	// What is left of a wait may be short. The timeouts and the size matter to the record only.
	if t.LockWait < 0 || t.MaxHold != 0 || t.MaxWaiters != 0 {
		err = s.Check(Terms{LockWait: min(t.LockWait, 0), MaxHold: t.MaxHold, MaxWaiters: t.MaxWaiters})
	}
	return t.withDefaults(), err
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
