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
// Redis may get a command long after it was sent, or twice: a proxy that has reset a connection may still
// pass on what it has read from it. Most scripts find out from what is stored that they have been
// done. Three cannot, once that has expired: they create a record, log in, and end all sessions of a
// user. So these are done only for a short time after they were sent, by Redis's clock:
//
//   - create.lua and login.lua for less time than the record lives, and than its tombstone does. Until
//     then a copy finds one of the two.
//   - endall.lua does no call twice: the user's mark remembers each for longer than a copy may come. If the
//     mark is lost, by eviction for example, its calls are forgotten.
//
// No clocks need to agree. A reply tells the process Redis's time, and from then on it counts by its
// own monotonic clock. The reply was on its way for a while, so the process takes Redis's time to be
// that much earlier than it is, and never later: no command is done after its time. The process may be
// too wrong: it knows nothing yet, or Redis's clock was set. Then the script does nothing and returns the
// time, and the process sends it once more. So the first of these commands in a process costs one round trip
// more. (After Redis's clock was set back by hours, a copy of what it has refused then
// would be done that many hours later.)
//
// # A login that is overtaken
//
// A login says when its request arrived, and is refused if that was before the last EndUser of its user. Both
// times are Redis's. That of the arrival is too early by as long as the reply was on its way that told
// the time. So who is refused asks once more, with the time that the refusal has told. A login is refused in
// vain only if it arrives within one such way after EndUser was done; and never in the process that
// called EndUser, whose reply told the time. On a cluster whose nodes have different times the difference
// counts, too: a login may pass that arrived before EndUser by less than that. After Redis's clock was set back,
// an EndUser before that seems to be later than now: the first login is refused and writes now in its place,
// so that no user is shut out for longer.

// maxWithin is half of what a tombstone lasts. The other half is for a clock that is ahead by as much,
// which the scripts let pass.
const maxWithin = tombstoneTime / 2

// within returns for how long a command may be done after it was sent: for as long as its caller waits.
func (s *Engine) within() time.Duration { return min(s.options.Timeout, maxWithin) }

type arrivalKey struct{}

// WithArrival returns a context which says when the request arrived that logs a user in, for
// [Engine.CreateRecord] and [Hold.Renew]: these refuse the login with [ErrGone] if the user's sessions were
// ended since, or if it arrived more than an hour ago. Default: when they are called.
func WithArrival(ctx context.Context, at time.Time) context.Context {
	return context.WithValue(ctx, arrivalKey{}, at)
}

func arrival(ctx context.Context, now time.Time) time.Time {
	if at, ok := ctx.Value(arrivalKey{}).(time.Time); ok {
		return at
	}
	return now
}

// A clock is that of Redis, as far as this process knows it.
type clock struct {
	began time.Time    // for the monotonic clock
	then  atomic.Int64 // what Redis's clock said at began, in Unix µs, or less; 0: it is not known
}

// learn notes what Redis's clock said in a reply that had come at heard. It changes what is known only if
// that was too early.
func (c *clock) learn(now int64, heard time.Time) {
	then := now - heard.Sub(c.began).Microseconds()
	for {
		known := c.then.Load()
		if then <= known || c.then.CompareAndSwap(known, then) {
			return
		}
	}
}

// inTime runs a script that includes clock.lua, which does nothing if Redis gets it later than within after it
// was sent. Its first arguments are when it was sent, and within. Then follows each of the moments, by
// Redis's clock.
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
		if _, reply, err = s.runner.RoundTrip(ctx, x); err != nil {
			return reply, err
		}
		refused, _ := reply.IntAt(0)
		now, _ := reply.IntAt(1)
		switch refused {
		case refusedLate:
			err = fmt.Errorf("%w: it came later than %v after it was sent, or Redis's clock is not steady", ErrUnavailable, within)
		case refusedEnded:
			err = ErrGone
		default:
			return reply, nil
		}
		if sent > now { // what is known is ahead
			s.clock.then.CompareAndSwap(known, 0)
		}
		s.clock.learn(now, time.Now())
	}
	return scripting.Reply{}, err
}

// What such a script answers if it has done nothing; then follows what Redis's clock says.
const (
	refusedLate  = -1
	refusedEnded = -2
)
