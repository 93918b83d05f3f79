package records

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/a2139e8d/latchkey/internal/scripting"
)

// # Late commands
//
// A command may reach Redis long after it was sent, or twice: a proxy that has reset a connection may still
// pass on what it has read from it. Most scripts see from the stored record that they have been done before.
// Three scripts cannot see that once the record has expired: those that create a record, log in, and end all
// sessions of a user. So Redis does them only within a short time after they were sent, by its own clock:
//
//   - create.lua and login.lua: a shorter time than the record and its tombstone live. Until then a late copy
//     finds one of the two. (A guest's session may be saved with an earlier end, by a Remember that is shorter than
//     Timeout. When it has expired, a copy of create.lua may bring back what it began with.)
//   - endall.lua: the user's mark remembers each call for longer than a copy may be done, so no call is done
//     twice. If the mark is lost, by eviction for example, the calls are forgotten.
//
// Clocks need not agree. A reply tells the process Redis's time, and from then on the process counts by its
// own monotonic clock. The reply was on its way for a while. So the process believes Redis's time to be a
// little earlier than it is, and never later. So no command is done after its time, unless Redis's clock was set
// back. If the process knows no time yet, or Redis's clock was set by more than a command's time, the script does
// nothing but return the time, and the process sends the command once more. So the first of these commands in a
// process costs one more round trip.
//
// If Redis's clock was set back by less than a command's time, the process believes it to be ahead, and the scripts
// accept that. Then a command may be done up to twice its time after it was sent. (If Redis's clock was set back by
// hours, a copy of a command that was refused before may be done that many hours later.)
//
// # A login that is overtaken
//
// A login tells when its request arrived, and is refused if that was before the last EndUser of its user.
// Both times are by Redis's clock. The process believes the arrival to be a little earlier than it was, by as
// long as a reply takes. So a refused login is sent once more, with the time from the refusal. A login is
// refused wrongly only if its request arrives after EndUser was done, but within the time that a reply takes.
// In the process that called EndUser this does not happen, since the reply told it the time. If the nodes of
// a cluster have different times, a login may pass that arrived before EndUser by less than the difference.
// If Redis's clock was set back, an earlier EndUser seems to be in the future. Then the first login is
// refused and replaces that time by now, so that the user is not locked out for longer.

// maxWithin is the most that within returns: half the time of a tombstone. The other half is for a clock that
// is ahead by as much, which the scripts accept.
const maxWithin = tombstoneTime / 2

// within returns for how long after it was sent a command may be done: no longer than its caller waits.
func (s *Engine) within() time.Duration { return min(s.options.Timeout, maxWithin) }

// A clock is what this process knows of Redis's clock.
type clock struct {
	began time.Time    // for the monotonic clock
	then  atomic.Int64 // Redis's time at began, in Unix µs, or less; 0: not known
}

// learn notes Redis's time, now, from a reply that arrived at heard, unless a later time is known already.
func (c *clock) learn(now int64, heard time.Time) {
	then := now - heard.Sub(c.began).Microseconds()
	for {
		known := c.then.Load()
		if then <= known || c.then.CompareAndSwap(known, then) {
			return
		}
	}
}

// at returns a moment by Redis's clock. Until this process knows that clock, by a login, a first record or an EndUser,
// it returns the moment as it is.
func (c *clock) at(moment time.Time) time.Time {
	then := c.then.Load()
	if then == 0 {
		return moment
	}
	return time.UnixMicro(then + moment.Sub(c.began).Microseconds())
}

// inTime runs a script that includes clock.lua. If the script reaches Redis later than within after it was
// sent, it does nothing. Its first arguments are the time at which it was sent, and within. Then come the
// moments. All these times are by Redis's clock.
func (s *Engine) inTime(
	ctx context.Context, x scripting.RoundTrip, within time.Duration, moments ...time.Time,
) (reply scripting.Reply, err error) {
	// All tries together take no longer than one round trip may.
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	rest := x.Args
	for range 3 {
		known, sent := s.clock.then.Load(), int64(0)
		at := func(t time.Time) int64 { return known + t.Sub(s.clock.began).Microseconds() }
		if known != 0 {
			sent = at(time.Now())
		}
		x.Args = append(make([]any, 0, len(rest)+4), sent, within.Microseconds())
		for _, moment := range moments {
			x.Args = append(x.Args, at(moment))
		}
		x.Args = append(x.Args, rest...)
		_, reply, err = s.runner.RoundTrip(ctx, x)
		if err != nil {
			return reply, err
		}
		refused, _ := reply.IntAt(0)
		now, _ := reply.IntAt(1)
		switch refused {
		case refusedLate:
			err = fmt.Errorf("%w: it arrived later than %v after it was sent, or Redis's clock is not steady", ErrUnavailable, within)
		case refusedEnded:
			err = ErrGone
		default:
			return reply, nil
		}
		if sent > now { // the known time is ahead of Redis's clock
			s.clock.then.CompareAndSwap(known, 0)
		}
		s.clock.learn(now, time.Now())
	}
	return scripting.Reply{}, err
}

// The replies of a script that was refused by clock.lua. Redis's time follows.
const (
	refusedLate  = -1
	refusedEnded = -2
)
