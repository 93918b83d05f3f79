package rueidisstore

import (
	"context"
	"sync/atomic"
	"time"
)

// health says whether rueidis can be trusted to return by a deadline. It cannot if a round trip has failed
// lately, or if so many are under way that the queue of a connection may be full: then rueidis waits without
// a bound.
type health struct {
	calm    time.Duration // how long a failure is remembered
	most    int64         // round trips under way that certainly do not fill a queue
	pending atomic.Int64  // round trips under way
	failed  atomic.Int64  // when a round trip last failed, in Unix nanoseconds
}

// good reports whether rueidis can be trusted now. judge must be called afterwards, whatever good returns.
func (h *health) good(now time.Time) bool {
	return h.pending.Add(1) <= h.most && now.UnixNano()-h.failed.Load() > int64(h.calm)
}

// judge notes the end of a round trip.
func (h *health) judge(err error) {
	if h.pending.Add(-1); err != nil {
		h.failed.Store(time.Now().UnixNano())
	}
}

// A sharedDeadline spares each round trip its own context: round trips that begin at about the same time have
// the same deadline.
type sharedDeadline struct{ latest atomic.Pointer[deadline] }

type deadline struct {
	context.Context
	stale time.Time // from then on it would be too early for new round trips
}

// until returns a context that ends after timeout, or up to 1/64 of the timeout earlier.
func (s *sharedDeadline) until(now time.Time, timeout time.Duration) context.Context {
	d := s.latest.Load()
	if d == nil || !now.Before(d.stale) {
		ctx, cancel := context.WithDeadline(context.Background(), now.Add(timeout))
		context.AfterFunc(ctx, cancel) // its timer ends it: the last user is not known
		d = &deadline{ctx, now.Add(timeout / 64)}
		s.latest.Store(d)
	}
	return d
}
