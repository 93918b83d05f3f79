package store

import (
	"context"
	"math"
	"sync"
	"time"
)

// An inUse keeps a session from running out while it is waited for or held under a lock
// that knows nothing of the record: a timer extends its idle timeout, now and then, until
// it is stopped. Most holds end before the first time.
type inUse struct {
	mu      sync.Mutex // guards what follows
	timer   *time.Timer
	stopped bool
}

// keepInUse starts one for a hold that may still be waiting for its lock. Each extension is
// one exchange. If one fails there is another chance before the timeout, and then the fence.
func (s *Store) keepInUse(ctx context.Context, h *Hold) *inUse {
	ctx, id, terms := context.WithoutCancel(ctx), h.id, h.terms
	terms.Lifetime = math.MaxInt64 // which may end while the session is held
	every := max(terms.TTL/3, time.Millisecond)
	u := new(inUse)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.timer = time.AfterFunc(every, func() {
		_, _ = s.load(ctx, id, terms)
		u.mu.Lock()
		defer u.mu.Unlock()
		if !u.stopped {
			u.timer.Reset(every)
		}
	})
	return u
}

// soon makes the next extension happen at once.
func (u *inUse) soon() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.stopped {
		u.timer.Reset(0)
	}
}

// stop ends it. Only a last exchange may be under way.
func (u *inUse) stop() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.stopped = true
	u.timer.Stop()
}
