package store

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/a2139e8d/latchkey/internal/scripting"
)

// # Late commands
//
// A command may reach Redis long after it was sent, also a second time: a proxy that resets a connection
// may still pass on what it has read from it. Nearly all scripts know by what they find that they have been
// done, or that others have written since. Three do not, once the traces of what they did are gone: a
// record that is created, a login, and the end of all of a user's sessions. So they are done only for a
// while after they were sent, by Redis's clock:
//
//   - create.lua and login.lua for less than a tombstone lasts, and than the record does. Until
//     then a copy finds one of the two.
//   - endall.lua keeps the names of the calls of which a copy may still come, and does none twice.
//
// No clocks need agree for that. The process knows Redis's clock from what Redis has said, and counts on
// from there by its own monotonic clock. It begins to count when the reply is there, which is later than
// Redis has said it: so it takes Redis's time to be earlier than it is, or right, and nothing is done later
// than it should be. If it is wrong by too much, since Redis's clock was set, another node of a cluster
// has another time, or nothing is known yet, the script does nothing and says what time it is, and is sent once
// more with that. So the first such exchange of a process costs one more. (What was sent by a clock that was
// ahead by an hour, say, since Redis's was set back, is in time an hour later. A copy that comes just then is
// done.)
//
// By the same clock a login says when its request arrived, and is compared with the last EndUser. What it
// says is too early by the time that a reply was on its way. If it is refused for that, it says it
// once more, by the clock of that refusal; only a reply that was slower than what lies between the two
// makes one refused that was later: the safe side. After an EndUser of this process that cannot
// happen, since its reply has set the clock. (If the clocks of a cluster's nodes are apart, and it is
// another's, a login that is on its way for as long may pass.) If Redis's clock is set back, an EndUser
// before that seems to be later than now: the first login writes now in its place, so that no user is shut out
// for longer.

// maxWithin is half of what a tombstone lasts: the other half is for a Redis whose clock was set back
// by less, and is not noticed.
const maxWithin = tombstoneTime / 2

// within returns for how long a command may be done after it was sent: for as long as its caller waits.
func (s *Store) within() time.Duration { return min(s.options.Timeout, maxWithin) }

// A clock is that of Redis, as far as this process knows it.
type clock struct {
	began time.Time    // for the monotonic clock
	then  atomic.Int64 // what Redis's clock said at began, in Unix µs, or less; 0: it is not known
}

// learn notes what Redis's clock has said, in a reply that was there at heard. What is known is only
// changed where it was too early.
func (c *clock) learn(now int64, heard time.Time) {
	then := now - heard.Sub(c.began).Microseconds()
	for {
		known := c.then.Load()
		if then <= known || c.then.CompareAndSwap(known, then) {
			return
		}
	}
}

// inTime runs a script that includes clock.lua. It is done for a while after it was sent, or never: its
// first arguments are when that is and within; and after these, for each of the moments, what Redis's clock
// said then.
func (s *Store) inTime(
	ctx context.Context, x scripting.Exchange, within time.Duration, moments ...time.Time,
) (reply scripting.Reply, err error) {
	// All tries together take no longer than one exchange may.
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
		if _, reply, err = s.runner.Exchange(ctx, x); err != nil {
			return reply, err
		}
		refused, _ := reply.IntAt(0)
		now, _ := reply.IntAt(1)
		switch refused {
		case refusedLate:
			err = fmt.Errorf("%w: Redis's clock is not steady, or it has taken longer than %v", ErrUnavailable, within)
		case refusedEnded:
			err = ErrGone
		default:
			return reply, nil
		}
		if sent > now { // else only what is later than what is known is new
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
