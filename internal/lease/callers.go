package lease

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Group is the callers of one process, by key. They wait for their turn at a key first
// come, first served. Only the one that has the turn talks to Redis. All callers that
// compete for a key in one process should use one Group. The zero Group is ready.
type Group struct {
	// Notifier wakes the places of this process, if the algorithm has a queue.
	Notifier *Notifier

	closed atomic.Bool
	mu     sync.Mutex               // guards all below, and is never held during I/O
	keys   map[string]*callers      // a key is in it while somebody has its turn
	timers map[*time.Timer]struct{} // of sweeps
}

// callers are those of one key.
type callers struct {
	waiting []*caller
	holder  holder // as seen by the one that has the turn
}

// A caller waits for its turn.
type caller struct {
	lease *Lease
	// turn gets nil once the caller has the turn; where its lease holds the lock by then,
	// the lock as well. An error says that there is nothing to wait for any more. It has
	// room for one, and gets one.
	turn  chan error
	place *place // comes with the turn, if the process has one
}

// A holder is who was last seen to hold a lock. The zero value is nobody.
type holder struct {
	token string
	lease *Lease    // where it is held in this process
	end   time.Time // of the lease, where it is held elsewhere
}

// left is how long the holder's lease lasts. It is not called with Group.mu held: the lease
// has a mutex of its own, under which it gives up its turn.
func (h holder) left() time.Duration {
	if h.lease != nil {
		return h.lease.Validity()
	}
	return time.Until(h.end)
}

// ErrClosed is the error of those that wait when a Group is closed, and of all that come later.
var ErrClosed = fmt.Errorf("%w: the store was closed", ErrUnavailable)

// Close dismisses all callers that wait, and ends the sweeps and the Notifier. What was to be
// swept is free when its lease ends. Leases that are held are not touched.
func (g *Group) Close() {
	if g.Notifier != nil {
		defer g.Notifier.close()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed.Store(true)
	for timer := range g.timers {
		timer.Stop()
	}
	clear(g.timers)
	for _, c := range g.keys {
		c.dismiss(ErrClosed)
	}
}

// enter waits for the turn at l's key, behind at most options.MaxWaiters others. After nil
// the turn is l's, and must be left once. An error is ErrTooManyWaiters, that of a
// dismissal, or the reason why the wait is over; nothing is left to undo then. A turn that
// comes as the wait ends is left to the next, unless the lock came with it.
func (g *Group) enter(l *Lease) (*place, error) {
	if l.options.Policy == LeaseEnd {
		if h := g.holder(l.key); h.left() > l.left() {
			return nil, l.options.held(h.token, time.Now())
		}
	}
	g.mu.Lock()
	c := g.keys[l.key]
	switch {
	case g.closed.Load():
		g.mu.Unlock()
		return nil, ErrClosed
	case c == nil:
		if g.keys == nil {
			g.keys = make(map[string]*callers)
		}
		g.keys[l.key] = new(callers)
		g.mu.Unlock()
		return nil, nil
	case len(c.waiting) >= l.options.MaxWaiters && !l.again:
		g.mu.Unlock()
		return nil, ErrTooManyWaiters
	}
	w := &caller{lease: l, turn: make(chan error, 1)}
	c.join(w)
	g.mu.Unlock()

	timer := time.NewTimer(l.remains())
	defer timer.Stop()
	select {
	case err := <-w.turn:
		return w.place, err
	case <-l.caller.Done():
	case <-timer.C:
	}
	if !g.giveUp(c, w) && <-w.turn == nil {
		if l.handed {
			return nil, nil
		}
		g.leave(l.key, w.place).quitLater() // the turn came too late
	}
	return nil, l.over()
}

// join puts a caller behind those that came before it: behind all, unless it waits for
// a second time. It is called with mu held.
func (c *callers) join(w *caller) {
	i := len(c.waiting)
	for i > 0 && w.lease.began.Before(c.waiting[i-1].lease.began) {
		i--
	}
	c.waiting = slices.Insert(c.waiting, i, w)
}

// giveUp takes out a caller, unless its turn is coming.
func (g *Group) giveUp(c *callers, w *caller) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(c.waiting, w)
	if i >= 0 {
		c.waiting = slices.Delete(c.waiting, i, i+1)
	}
	return i >= 0
}

// dismiss fails all callers that wait for key now, with err. The one that has the turn keeps it.
func (g *Group) dismiss(key string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c := g.keys[key]; c != nil {
		c.dismiss(err)
	}
}

// dismiss is called with mu held.
func (c *callers) dismiss(err error) {
	for _, w := range c.waiting {
		w.turn <- err
	}
	c.waiting = nil
}

// setHolder notes who holds key. It is called by the one that has the turn.
func (g *Group) setHolder(key string, h holder) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.keys[key].holder = h
}

// holder returns who was last seen to hold key.
func (g *Group) holder(key string) holder {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c := g.keys[key]; c != nil {
		return c.holder
	}
	return holder{}
}

// leave gives the turn, and the process's place, to the next caller. Where there is none, it
// returns the place, which the process has no use for any more.
func (g *Group) leave(key string, p *place) (left *place) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.keys[key]
	if len(c.waiting) == 0 {
		delete(g.keys, key)
		return p
	}
	c.holder = holder{} // what the next one finds may be somebody else
	w := c.next()
	w.place = p
	w.turn <- nil
	return nil
}

// next takes out the caller that has waited longest, or returns nil. It is called with mu held.
func (c *callers) next() *caller {
	if len(c.waiting) == 0 {
		return nil
	}
	first := c.waiting[0]
	c.waiting = slices.Delete(c.waiting, 0, 1)
	return first
}

// next takes out the caller that has waited longest, or returns nil. It is called by the one
// that has the turn, like first.
func (g *Group) next(key string) *caller {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.keys[key].next()
}

// first returns the lease that the next caller is to have, or nil.
func (g *Group) first(key string) *Lease {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c := g.keys[key]; len(c.waiting) > 0 {
		return c.waiting[0].lease
	}
	return nil
}
