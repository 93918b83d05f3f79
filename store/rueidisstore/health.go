package rueidisstore

import (
	"context"
	"sync/atomic"
	"time"
)

// health says whether rueidis can be trusted to answer by a deadline. It is not where something
// has failed lately, or where so many exchanges are under way that the queue of a connection may
// be full: there it waits as long as it takes.
type health struct {
	calm    time.Duration // how long a failure is remembered
	most    int64         // exchanges under way that certainly do not fill a queue
	pending atomic.Int64  // exchanges under way
	failed  atomic.Int64  // when one has failed last, in Unix nanoseconds
}

// good is followed by judge, whatever it returns.
func (h *health) good(now time.Time) bool {
	return h.pending.Add(1) <= h.most && now.UnixNano()-h.failed.Load() > int64(h.calm)
}

// judge takes note of the end of an exchange.
func (h *health) judge(err error) {
	if h.pending.Add(-1); err != nil {
		h.failed.Store(time.Now().UnixNano())
	}
}

// A sharedDeadline saves each exchange a context of its own: those that begin at about the same
// time end at the same time.
type sharedDeadline struct{ latest atomic.Pointer[deadline] }

type deadline struct {
	context.Context
	stale time.Time // it would be too early for those that begin from then on
}

// until returns a context that ends when timeout is over, or up to 1/64 of that earlier.
func (s *sharedDeadline) until(now time.Time, timeout time.Duration) context.Context {
	d := s.latest.Load()
	if d == nil || !now.Before(d.stale) {
		ctx, cancel := context.WithDeadline(context.Background(), now.Add(timeout))
		context.AfterFunc(ctx, cancel) // its timer ends it: nobody knows who uses it last
		d = &deadline{ctx, now.Add(timeout / 64)}
		s.latest.Store(d)
	}
	return d
}
