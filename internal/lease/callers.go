package lease

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Group is the callers of one process, by key. They wait for their turn at a key first
// come, first served. Only the one that has the turn talks to Redis. The zero Group is ready.
type Group struct {
	// Notifiers wake the places of this process, if the algorithm has a queue.
	Notifiers *Notifiers

	closed atomic.Bool
	mu     sync.Mutex          // guards all below, and is never held during I/O
	keys   map[string]*callers // a key is in it while somebody has its turn
	held   alarms              // of leases: when they are to be extended
	waits  alarms              // of callers that wait: when their time is over
}

// callers are those of one key.
type callers struct {
	waiting []*Lease
	holder  holder // as seen by the one that has the turn
}

// A holder is who was last seen to hold a lock. The zero value is nobody.
type holder struct {
	token string
	lease *Lease    // where it is held in this process
	end   time.Time // of the lease, where it is held elsewhere
}

// left is how long the holder's lease lasts. It is not called with Group.mu held, since it
// takes the lease's.
func (h holder) left() time.Duration {
	if h.lease != nil {
		return h.lease.Validity()
	}
	return time.Until(h.end)
}

// ErrClosed is the error of those that wait when a Group is closed, and of all that come later.
var ErrClosed = fmt.Errorf("%w: the store was closed", ErrUnavailable)

// Close dismisses all callers that wait, and ends the sweeps and the Notifiers. What was to be
// swept is free when its lease ends. Leases that are held are not touched.
func (g *Group) Close() {
	if g.Notifiers != nil {
		defer g.Notifiers.close()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed.Store(true)
	for _, c := range g.keys {
		c.dismiss(ErrClosed)
	}
}

// enter waits for the turn at l's key, behind at most options.MaxWaiters others. After nil
// the turn is l's, and must be left once; after an error nothing is left to undo. A turn that
// comes as the wait ends is left to the next, unless the lock came with it.
func (g *Group) enter(l *Lease) error {
	if l.options.Policy == LeaseEnd {
		if h := g.holder(l.key); h.left() > l.left() {
			return l.options.held(ErrTimeout, h.token, time.Now())
		}
	}
	g.mu.Lock()
	c := g.keys[l.key]
	switch {
	case g.closed.Load():
		g.mu.Unlock()
		return ErrClosed
	case c == nil:
		if g.keys == nil {
			g.keys = make(map[string]*callers)
		}
		g.keys[l.key] = new(callers)
		g.mu.Unlock()
		return nil
	case len(c.waiting) >= l.options.MaxWaiters && !l.again:
		token := c.holder.token
		g.mu.Unlock()
		return l.options.held(ErrTooManyWaiters, token, time.Now())
	}
	l.called = make(chan error, 1)
	c.join(l)
	end, left := l.began.Add(l.options.Wait), l.remains()
	if g.waits.ring == nil {
		g.waits.ring = g.endWaits
	}
	shared := g.waits.add(l, end, slack(left))
	g.mu.Unlock()

	if !shared {
		defer time.AfterFunc(left, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.endWait(l)
		}).Stop()
	}
	select {
	case err := <-l.called:
		if err == errOver {
			err = cmp.Or(l.over(), l.timeout())
		}
		return err
	case <-l.caller.Done():
	}
	if !g.giveUp(c, l) && <-l.called == nil {
		if l.handed {
			return nil
		}
		g.leave(l).quit(0) // the turn came too late
	}
	return l.over()
}

// errOver ends the wait of a caller whose time is over.
var errOver = errors.New("over")

// join puts a caller behind all, or where it came before if it waits for a second time. It is
// called with mu held.
func (c *callers) join(l *Lease) {
	i := len(c.waiting)
	for i > 0 && l.began.Before(c.waiting[i-1].began) {
		i--
	}
	c.waiting = slices.Insert(c.waiting, i, l)
}

// giveUp takes out a caller, unless its turn is coming.
func (g *Group) giveUp(c *callers, l *Lease) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return c.remove(l)
}

// remove is called with mu held.
func (c *callers) remove(l *Lease) bool {
	i := slices.Index(c.waiting, l)
	if i >= 0 { // else it may have the lock by now, and the alarm is that of its lease
		l.alarm.cancel()
		c.waiting = slices.Delete(c.waiting, i, i+1)
	}
	return i >= 0
}

// Dismiss fails all callers of this process that wait for the lock now, with err. The one
// that has the turn keeps it.
func (l *Lease) Dismiss(err error) {
	l.group.mu.Lock()
	defer l.group.mu.Unlock()
	if c := l.group.keys[l.key]; c != nil {
		c.dismiss(err)
	}
}

// dismiss is called with mu held.
func (c *callers) dismiss(err error) {
	for _, l := range c.waiting {
		l.alarm.cancel()
		l.called <- err
	}
	c.waiting = nil
}

// hold notes that l holds its key from now on, and sets its alarm. Where that is not among the
// others' ends, l needs a timer of its own.
func (g *Group) hold(l *Lease, due time.Time, slack time.Duration) (shared bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.keys[l.key].holder = holder{token: l.token, lease: l}
	if g.held.ring == nil {
		g.held.ring = g.renewDue
	}
	return g.held.add(l, due, slack)
}

// release cancels the alarm of a lease that is over, and returns the caller that has waited
// longest for the lock, or nil.
func (g *Group) release(l *Lease) *Lease {
	g.mu.Lock()
	defer g.mu.Unlock()
	l.alarm.cancel()
	if c := g.keys[l.key]; c != nil && len(c.waiting) > 0 {
		return c.waiting[0]
	}
	return nil
}

// wait reports whether callers of this process wait for key behind the one that has the turn.
func (g *Group) wait(key string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.keys[key].waiting) > 0
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

// leave gives l's turn, and the process's place, to the next caller. Where there is none, it
// returns the place, to be given up.
func (g *Group) leave(l *Lease) (left *place) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l.alarm.cancel()
	c := g.keys[l.key]
	if len(c.waiting) == 0 {
		delete(g.keys, l.key)
		return l.place
	}
	next := c.next()
	c.holder = holder{} // what the next one finds may be somebody else
	next.place = l.place
	next.called <- nil
	return nil
}

// next takes out the caller that has waited longest, or returns nil. It is called with mu held.
func (c *callers) next() *Lease {
	if len(c.waiting) == 0 {
		return nil
	}
	first := c.waiting[0]
	c.waiting = slices.Delete(c.waiting, 0, 1)
	first.alarm.cancel()
	return first
}

// next is that of callers, for the one that has the turn; but nil if that caller has another label.
func (g *Group) next(key, label string) *Lease {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.keys[key]
	if len(c.waiting) > 0 && c.waiting[0].label != label {
		return nil
	}
	return c.next()
}
