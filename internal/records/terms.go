package records

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
)

// Terms are the limits of a session. Zero fields mean the defaults, except in [Engine.Load]. Only GuestTTL is
// stored. Every save or touch applies the Terms that were passed to Take, unless the record has timeouts of its
// own ([Times]). So all requests of a session should use the same Terms.
type Terms struct {
	TTL      time.Duration // idle timeout: an unused session expires after it. Default 30 min.
	Lifetime time.Duration // absolute timeout, from the creation; at least TTL. Default 24 h.
	GuestTTL time.Duration // idle timeout of a session that begins, until Renew; at most TTL. Default TTL.
	LockWait time.Duration // the longest wait for the session. Default 10 s.
	// MaxHold is the longest a request may hold its session. Default 1 min. MaxWaiters is how
	// many requests may wait for one session in one process. Default 128.
	MaxHold    time.Duration
	MaxWaiters int
	MaxBytes   int // of the largest record. Default 1 MiB.
	// MaxSessions is how many sessions a user may have. A login beyond that ends the session that would
	// expire first or, with RefuseLogin, fails with ErrTooManySessions. Default 1,000: more than people have.
	// It bounds what a program costs that logs in again and again without keeping the cookie: a login, a list
	// and EndUser take longer the more sessions there are.
	MaxSessions int
	RefuseLogin bool
	// Quiet means that the session is not used by its visitor but by a job, say. That does not extend the
	// idle timeout. The session does not expire while it is held or waited for, nor for a lease after that.
	Quiet bool
	// Label names the holder in the errors of waiters. It is stored in the lock. See [locker.WithLabel].
	Label string
}

// Defaults of [Terms]; the others are those of package locker.
const (
	DefaultTTL      = 30 * time.Minute
	DefaultLifetime = 24 * time.Hour
	DefaultMaxBytes = 1 << 20

	DefaultMaxSessions = 1000
)

// Check returns the first rule that t breaks, or nil.
func (t Terms) Check() error {
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"TTL", t.TTL}, {"GuestTTL", t.GuestTTL}, {"Lifetime", t.Lifetime}, {"LockWait", t.LockWait}, {"MaxHold", t.MaxHold}} {
		if d.value < 0 || d.value > 0 && d.value < time.Millisecond {
			return fmt.Errorf("%s is %v: it must be at least 1ms, or 0 for the default", d.name, d.value)
		}
	}
	for _, n := range []struct {
		name  string
		value int
	}{{"MaxWaiters", t.MaxWaiters}, {"MaxBytes", t.MaxBytes}, {"MaxSessions", t.MaxSessions}} {
		if n.value < 0 {
			return fmt.Errorf("%s is %d: it must not be negative", n.name, n.value)
		}
	}
	switch d := t.withDefaults(); {
	case d.TTL > d.Lifetime:
		return fmt.Errorf("TTL is %v and Lifetime %v: Lifetime must not be shorter than TTL", d.TTL, d.Lifetime)
	case d.GuestTTL > d.TTL:
		return fmt.Errorf("GuestTTL is %v and TTL %v: it must not be longer", d.GuestTTL, d.TTL)
	case d.GuestTTL > maxIdle:
		return fmt.Errorf("GuestTTL is %v: it must be at most 31 years", d.GuestTTL)
	case t.RefuseLogin && t.MaxSessions == 0:
		return errors.New("RefuseLogin is set and MaxSessions is 0, the default: it must say how many are not too many")
	}
	return nil
}

// terms returns t with its zero fields filled in, or why a request must not take a session.
func (s *Engine) terms(t Terms) (_ Terms, err error) {
	if err := s.usable(); err != nil {
		return t, err
	}
	// What is left of a wait may be short. The timeouts and the size matter to the record only.
	if t.LockWait < 0 || t.MaxHold != 0 || t.MaxWaiters != 0 {
		err = Terms{LockWait: min(t.LockWait, 0), MaxHold: t.MaxHold, MaxWaiters: t.MaxWaiters}.Check()
	}
	return t.withDefaults(), err
}

// withDefaults returns t with its zero fields filled in.
func (t Terms) withDefaults() Terms {
	t.TTL = cmp.Or(t.TTL, DefaultTTL)
	t.Lifetime = cmp.Or(t.Lifetime, DefaultLifetime)
	t.LockWait = cmp.Or(t.LockWait, lease.DefaultWait)
	t.MaxBytes = cmp.Or(t.MaxBytes, DefaultMaxBytes)
	t.MaxSessions = cmp.Or(t.MaxSessions, DefaultMaxSessions)
	return t
}

// Guest returns the timeouts that a new guest session has of its own by these terms, or nil.
func (t Terms) Guest() *Times {
	if t.GuestTTL == 0 {
		return nil
	}
	return &Times{Idle: t.GuestTTL}
}
