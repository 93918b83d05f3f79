package lease

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// The queue of a key is the list of processes that wait for the lock. It is a string in Redis, next to the lock; see
// queue.lua. A process has one place in the queue, however many of its callers wait. A release gives the lock to the
// first place, and publishes that. Then the process of that place takes the lock over for one of its callers.
//
// The message is only a hint. The lock's value counts: the process asks for it when it is notified, and now and then
// without a message. So a lost message costs a little time, and a superfluous message does nothing. A process that has
// died does not listen, and is passed over at once. A process that listens but does not take the lock is passed over
// after a second.
//
// If the network has made a copy of a take, the copy may join the queue when the caller has long left. The turn of such
// a place ends as soon as its process is notified. If the process cannot be notified, the turn ends after a quarter of
// a second. Then the place is no longer in the queue.

// A place is the place of a process in the queue of a key. The head of the line uses the place, and leaves it to the
// next head when it gives up. So a process keeps its turn however impatient its callers are.
type place struct {
	notifier *notifier
	sweeper  *Sweeper
	options  *Options // of the head that made it
	queue    Queue    // its algorithm
	key      string
	name     string        // chosen when the place is first used
	number   int           // unique among the notifier's places
	queued   bool          // the place was in the queue after the last try
	notified chan struct{} // gets a value when the turn has come, or may have
	// maybeQueued: a try may have been done, so the place may be in the queue, or still get there.
	maybeQueued bool
}

// isPlace reports whether value is the name of a place: the lock is being given to it. Otherwise the lock is held.
func isPlace(value string) bool {
	return strings.HasPrefix(strings.TrimPrefix(value, "-"), channelPrefix)
}

// quit takes the place out of the queue, if it is there, and forgets it. For first see sweepFirst. Without a place it
// does nothing.
func (p *place) quit(first time.Duration) {
	if p == nil {
		return
	}
	p.forget()
	if p.name != "" {
		p.sweeper.sweepFirst(p.options, first, p.maybeQueued, func(ctx context.Context) bool {
			return p.queue.Quit(ctx, p.key, p.name) == nil
		})
	}
}

// forget removes a place that is no longer in the queue from its notifier.
func (p *place) forget() {
	n := p.notifier
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.places, p.number)
	n.stopWhenIdle()
}

// ready returns a channel that is closed when it is known whether the place will be notified.
func (p *place) ready() <-chan struct{} {
	n := p.notifier
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ready
}

// isNotified reports whether the place will be notified when its turn has come. Otherwise it must ask.
func (p *place) isNotified() bool {
	n := p.notifier
	n.mu.Lock()
	defer n.mu.Unlock()
	n.subscribeOnce()
	return n.subscription != nil && !strings.HasPrefix(p.name, "-")
}

// choose returns the name of the place. The name is "" until it is known whether the place will be notified: before
// that, the lock might be won without the place, and be given to the place later. The name changes once, if the
// subscription has ended and cannot be renewed: a release that gave the lock to the old name would find no listener,
// and pass the place over every time.
func (p *place) choose() string {
	n := p.notifier
	n.mu.Lock()
	defer n.mu.Unlock()
	n.subscribeOnce()
	name := n.channel + "/" + strconv.Itoa(p.number)
	switch {
	case strings.HasPrefix(p.name, "-"):
	case n.subscription != nil:
		p.name = name
	case n.starting.IsZero() || time.Since(n.starting) > subscribeTime: // there will be no subscription for a while
		p.name = "-" + name
	}
	return p.name
}

func (p *place) notify() {
	select {
	case p.notified <- struct{}{}:
	default: // there is a value already
	}
}
