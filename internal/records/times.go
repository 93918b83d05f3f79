package records

import (
	"bytes"
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
