package locker

import (
	"slices"
	"sync"
	"time"
)

// A line is where the callers of one process wait for their turn at a key,
// first come, first served. The zero line is ready.
//
// A key is in the map while somebody has its turn, so an idle key costs nothing.
type line struct {
	mu    sync.Mutex // guards keys and all that is in it
	keys  map[string]*queue
	spare *queue // the last one that was of no more use: most are for a moment
}

// A queue is who waits for one key.
type queue struct {
	waiting []*waiter
	holder  sighting // as seen by whoever has the turn
	// place is this process's in the queue of processes, if it has one: whoever has the
	// turn uses it, and leaves it to the next.
	place *place
}

// A waiter is told, once, through a channel with room for that. nil passes the turn
// to it: where its lease holds the lock by then, the lock as well. An error says
// that there is nothing to wait for any more.
type waiter struct {
	told  chan error
	lease *Lease
	began time.Time
}

// A sighting is who was last seen to hold a lock. The zero value is nobody.
type sighting struct {
	token string
	lease *Lease    // where it is held in this process
	end   time.Time // of the lease, where it is held elsewhere
}

// left is how long the holder's lease lasts. Not to be called with line.mu held:
// the lease has a mutex of its own, under which it leaves the line.
func (s sighting) left() time.Duration {
	if s.lease != nil {
		return s.lease.Validity()
	}
	return time.Until(s.end)
}

// enter waits for the turn at key, in a queue of at most most waiters, for a lease
// that is to be. Whoever got nil has the turn and must call leave, once. An error is
// ErrTooManyWaiters, what dismiss was told, or the reason why the wait is over; nothing is
// left to undo then. A turn that comes as wait ends is passed on, unless the lock
// came with it.
func (l *line) enter(key string, most int, wait *wait, lease *Lease) error {
	l.mu.Lock()
	q := l.keys[key]
	if q == nil {
		if l.keys == nil {
			l.keys = make(map[string]*queue)
		}
		if q, l.spare = l.spare, nil; q == nil {
			q = new(queue)
		}
		l.keys[key] = q
		l.mu.Unlock()
		return nil
	}
	if len(q.waiting) >= most && !wait.again {
		l.mu.Unlock()
		return ErrTooManyWaiters
	}
	w := &waiter{told: make(chan error, 1), lease: lease, began: wait.began}
	q.join(w)
	l.mu.Unlock()

	timer := time.NewTimer(wait.remains())
	defer timer.Stop()
	select {
	case err := <-w.told:
		return err
	case <-wait.caller.Done():
	case <-timer.C:
	}
	if !l.giveUp(q, w) && <-w.told == nil {
		if lease.isHanded() {
			return nil
		}
		l.leave(key).quitLater() // the turn came too late
	}
	return wait.over()
}

// join puts a waiter behind those who came before it: behind all, unless it waits for
// a second time. It is called with mu held.
func (q *queue) join(w *waiter) {
	i := len(q.waiting)
	for i > 0 && w.began.Before(q.waiting[i-1].began) {
		i--
	}
	q.waiting = slices.Insert(q.waiting, i, w)
}

// giveUp takes a waiter out of the queue, unless it is about to be told.
func (l *line) giveUp(q *queue, w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(q.waiting, w)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	return i >= 0
}

// dismiss sends everybody away who waits for key now, with err. Whoever has the
// turn keeps it.
func (l *line) dismiss(key string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.keys[key]
	if q == nil {
		return
	}
	for _, waiter := range q.waiting {
		waiter.told <- err
	}
	q.waiting = nil
}

// sees notes who holds key. Called by whoever has the turn.
func (l *line) sees(key string, holder sighting) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys[key].holder = holder
}

// holder returns who was last seen to hold key.
func (l *line) holder(key string) sighting {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.keys[key]; q != nil {
		return q.holder
	}
	return sighting{}
}

// leave passes the turn to the next waiter. Where there is none, it returns the place
// that the process has no use for any more, or nil.
func (l *line) leave(key string) (left *place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pass(key, l.keys[key])
}

// pass is leave with mu held.
func (l *line) pass(key string, q *queue) (left *place) {
	q.holder = sighting{} // what the next one finds may be somebody else
	if len(q.waiting) == 0 {
		left, q.place = q.place, nil
		delete(l.keys, key)
		l.spare = q
		return left
	}
	q.pop().told <- nil
	return nil
}

// takePlace returns the place that was left to whoever has the turn, or nil, and
// leavePlace leaves one to the next.
func (l *line) takePlace(key string) (p *place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.keys[key]
	p, q.place = q.place, nil
	return p
}

func (l *line) leavePlace(key string, p *place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys[key].place = p
}

// pop takes out the first waiter. It is called with mu held, where there is one.
func (q *queue) pop() *waiter {
	first := q.waiting[0]
	q.waiting = slices.Delete(q.waiting, 0, 1)
	return first
}

// first returns the lease that the first waiter is to have, or nil. It is called by
// whoever has the turn, like next.
func (l *line) first(key string) *Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.keys[key]; len(q.waiting) > 0 {
		return q.waiting[0].lease
	}
	return nil
}

// next takes out the first waiter, or returns nil. The turn passes to it once it is
// told.
func (l *line) next(key string) *waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.keys[key]; len(q.waiting) > 0 {
		return q.pop()
	}
	return nil
}
