package records

import (
	"bytes"
	"math"
	"strconv"
	"time"
)

// Times are timeouts of a session's own. They are kept in its record, and count in place of those
// of the [Terms] that it is taken with, whoever takes it. They are not changed: a session that is
// to have others gets others.
type Times struct {
	// Idle is the idle timeout of a session that nobody has logged in to; 0: Terms.TTL. A new id
	// ends it. At most 31 years.
	Idle time.Duration
	// Until is when the session ends, used or not: no other timeout counts then. Zero: it ends by
	// the others.
	Until time.Time
}

// renewed returns what a session keeps of its own with a new id, since that is for a login.
func (o *Times) renewed() *Times {
	if o == nil || o.Until.IsZero() {
		return nil
	}
	return &Times{Until: o.Until}
}

// In the head of a record they stand between its creation and its data, in ms and Unix ms:
//
//	"c":…,"i":300000,"u":1766278060000,"d":…
//
// The scripts read them by times.lua. It and package time can count as far as this many digits.
const (
	idleDigits  = 12
	untilDigits = 15
)

const maxIdle = (1e12 - 1) * time.Millisecond // some 31 years

// appendTo appends the stored form.
func (o *Times) appendTo(b []byte) []byte {
	if o == nil {
		return b
	}
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
			break // it begins with a zero
		}
	}
	return n, number, n > 0
}

// # Which timeout counts

// Expires returns when a session with this record ends if it is not used after now: at whichever
// timeout comes first.
func (t Terms) Expires(r Record, now time.Time) time.Time {
	return now.Add(t.withDefaults().remains(&r, now))
}

// remains is the one place that says how long a record is to be kept.
func (t Terms) remains(r *Record, now time.Time) time.Duration {
	if r.Own != nil && !r.Own.Until.IsZero() {
		return t.left(r, now)
	}
	return min(t.idle(r), t.left(r, now))
}

// idle returns for how long a session that does not end at a time of its own may be idle.
func (t Terms) idle(r *Record) time.Duration {
	if r.Own != nil && r.Own.Idle > 0 {
		return r.Own.Idle
	}
	return t.TTL
}

// left returns for how long a session may live from now on, used or not. Without a Lifetime,
// which only a Load may lack, that is for ever.
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

// expiry returns in how many milliseconds a record is to expire if it is written now.
func (t Terms) expiry(r *Record, now time.Time) int64 {
	return max(1, t.remains(r, now).Milliseconds())
}

// ttl is expiry for the commit of a hold: negative where the record is to have no longer than it
// has, see quietly.
func (t Terms) ttl(r *Record, now time.Time) int64 {
	if t.Quiet {
		return -t.expiry(r, now)
	}
	return t.expiry(r, now)
}

// expired reports whether a session has come to its end, used or not.
func (t Terms) expired(r *Record, now time.Time) bool { return t.left(r, now) <= 0 }

// outlived returns the Unix ms at or before which a record must have been created to
// have reached its lifetime now.
func (t Terms) outlived(now time.Time) int64 { return now.Add(-t.Lifetime).UnixMilli() }

// Seen returns when a session was used last that expires at a time, as far as that shows it: zero for
// one that has an end of its own, and for one that is nearer to the end of its Lifetime than to its
// idle timeout.
func (t Terms) Seen(r Record, now, expires time.Time) time.Time {
	t = t.withDefaults()
	idle := t.idle(&r)
	if r.Own != nil && !r.Own.Until.IsZero() || t.left(&r, now)-expires.Sub(now) < time.Second {
		return time.Time{}
	}
	return earlier(expires.Add(-idle), now)
}
