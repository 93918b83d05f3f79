package records

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
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
	// MaxHold is the longest time for which a request may hold its session. Default 1 min, or Lease if that is longer.
	// MaxWaiters is how many requests may wait for one session in one process. Default 128.
	MaxHold    time.Duration
	MaxWaiters int
	MaxBytes   int // of the largest record. Default 1 MiB.
	// MaxSessions is how many sessions a user may have. A login beyond that ends the session that would
	// expire first or, with RefuseLogin, fails with ErrTooManySessions. Default 1,000: more than people have.
	// It bounds the cost of a program that logs in again and again without keeping the cookie: a login,
	// ListUser and EndUser take longer the more sessions there are.
	MaxSessions int
	RefuseLogin bool
	// Quiet means that the session is used by a job, for example, and not by its visitor. Such a use does not
	// extend the idle timeout. But the session does not expire while it is held or waited for: see P12 in PROMISES.md.
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
		return fmt.Errorf("GuestTTL is %v and TTL %v: GuestTTL must not be longer than TTL", d.GuestTTL, d.TTL)
	case d.GuestTTL > maxIdle:
		return fmt.Errorf("GuestTTL is %v: it must be at most 31 years", d.GuestTTL)
	case t.RefuseLogin && t.MaxSessions == 0:
		return errors.New("RefuseLogin is set and MaxSessions is 0, the default: with RefuseLogin it must be set")
	}
	return nil
}

// terms returns t with its defaults, or why a request must not take a session.
func (s *Engine) terms(t Terms) (_ Terms, err error) {
	if err := s.usable(); err != nil {
		return t, err
	}
	// A LockWait may be shorter than Check allows, since it may be the rest of a wait. The timeouts and the
	// size matter to the record only.
	if t.LockWait < 0 || t.MaxHold != 0 || t.MaxWaiters != 0 {
		err = Terms{LockWait: min(t.LockWait, 0), MaxHold: t.MaxHold, MaxWaiters: t.MaxWaiters}.Check()
	}
	return t.withDefaults(), err
}

// withDefaults returns t with its defaults, except for MaxHold and MaxWaiters, which lockingBy fills in.
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

// Times are the timeouts that a session has of its own, in its record. They replace those of the [Terms]. A
// Times is immutable: to change a session's timeouts, replace it.
type Times struct {
	// Idle is the idle timeout of a guest's session; 0: Terms.TTL. A Renew removes it. At most 31 years.
	Idle time.Duration
	// Until is when the session ends, used or not. If it is set, no other timeout counts.
	Until time.Time
}

// renewed returns the timeouts that a session keeps when a login gives it a new ID.
func (o *Times) renewed() *Times {
	if o == nil || o.Until.IsZero() {
		return nil
	}
	return &Times{Until: o.Until}
}

// In the head of a record, Times stand between the creation time and the data, in ms and Unix ms:
//
//	"c":…,"i":300000,"u":1766278060000,"d":…
//
// The scripts read them by times.lua. Lua and package time can count as far as these numbers of digits.
const (
	idleDigits  = 12
	untilDigits = 15
)

const maxIdle = (1e12 - 1) * time.Millisecond // some 31 years

// appendTo appends the stored form.
func (o *Times) appendTo(b []byte) []byte {
	if o.Idle > 0 {
		b = append(b, `,"i":`...)
		b = strconv.AppendInt(b, max(1, min(o.Idle, maxIdle).Milliseconds()), 10)
	}
	if !o.Until.IsZero() {
		b = append(b, `,"u":`...)
		b = strconv.AppendInt(b, max(1, o.Until.UnixMilli()), 10)
	}
	return b
}

// cutTimes cuts off what appendTo has appended, and accepts nothing else.
func cutTimes(b []byte) (o *Times, rest []byte, ok bool) {
	idle, b, ok := cutNumber(b, `,"i":`, idleDigits)
	if !ok {
		return nil, nil, false
	}
	until, b, ok := cutNumber(b, `,"u":`, untilDigits)
	if !ok || idle+until == 0 {
		return nil, b, ok
	}
	o = &Times{Idle: time.Duration(idle) * time.Millisecond}
	if until > 0 {
		o.Until = time.UnixMilli(until)
	}
	return o, b, true
}

// cutNumber cuts off a positive number that follows name. It is 0 if name is not there.
func cutNumber(b []byte, name string, digits int) (n int64, rest []byte, ok bool) {
	number, found := bytes.CutPrefix(b, []byte(name))
	if !found {
		return 0, b, true
	}
	for len(number) > 0 && number[0] >= '0' && number[0] <= '9' && digits > 0 {
		n, number, digits = 10*n+int64(number[0]-'0'), number[1:], digits-1
		if n == 0 {
			break // the number begins with a zero
		}
	}
	return n, number, n > 0
}

// # Which timeout counts

// Expires returns when a session with this record ends if it is not used after now: the first of its
// timeouts.
func (t Terms) Expires(r Record, now time.Time) time.Time {
	return now.Add(t.withDefaults().remains(&r, now))
}

// remains returns for how long Redis keeps a record. No other function decides that; times.lua decides the same
// for scripts.
func (t Terms) remains(r *Record, now time.Time) time.Duration {
	if r.Own != nil && !r.Own.Until.IsZero() {
		return t.left(r, now)
	}
	return min(t.idle(r), t.left(r, now))
}

// idle returns the idle timeout of a session without an Until.
func (t Terms) idle(r *Record) time.Duration {
	if r.Own != nil && r.Own.Idle > 0 {
		return r.Own.Idle
	}
	return t.TTL
}

// left returns for how long a session may live from now on, used or not. Without a Lifetime, which only a Load
// may lack, it returns the longest duration.
func (t Terms) left(r *Record, now time.Time) time.Duration {
	switch {
	case t.Lifetime == 0:
		return math.MaxInt64
	case r.Own != nil && !r.Own.Until.IsZero():
		return r.Own.Until.Sub(now)
	default:
		return r.Created.Add(t.Lifetime).Sub(now)
	}
}

// expiry returns the time to live, in milliseconds, of a record that is written now.
func (t Terms) expiry(r *Record, now time.Time) int64 {
	return max(1, t.remains(r, now).Milliseconds())
}

// onlyLifetime reports whether sessions end only at the end of their lifetime, since the idle timeout is not shorter.
func (t Terms) onlyLifetime() bool { return t.TTL >= t.Lifetime && t.Lifetime > 0 }

// expired reports whether a session has reached the end of its lifetime.
func (t Terms) expired(r *Record, now time.Time) bool { return t.left(r, now) <= 0 }

// outlived returns a time in Unix ms. Records created at that time or before have reached the end of their
// lifetime.
func (t Terms) outlived(now time.Time) int64 { return now.Add(-t.Lifetime).UnixMilli() }

// Seen estimates when a session was last used from when it expires. It returns zero if that is impossible: for
// a session with an Until, and during the last TTL of its Lifetime.
func (t Terms) Seen(r Record, now, expires time.Time) time.Time {
	t = t.withDefaults()
	idle := t.idle(&r)
	if r.Own != nil && !r.Own.Until.IsZero() || t.left(&r, now)-expires.Sub(now) < time.Second {
		return time.Time{}
	}
	return earlier(expires.Add(-idle), now)
}

// fits returns an error if a record of this stored size is too large.
func (t Terms) fits(size int) error {
	if size > t.MaxBytes {
		return fmt.Errorf("%w: the record would have %d bytes, MaxBytes is %d", ErrTooLarge, size, t.MaxBytes)
	}
	return nil
}
