package lease

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// The queue of a key is the processes that wait for it. It is a string in Redis, next to the lock; see queue.lua. A
// process has one place in it, however many of its callers wait. A release gives the lock to the first place, and
// publishes that. Then the process of that place takes the lock over for one of its callers.
//
// The message is a hint and nothing else. What counts is the lock's value: the process asks for it when it is notified,
// and now and then without that. So a lost message costs a little time, and one too many does nothing. A process that
// has died does not listen, and is passed over at once. One that listens and does not take the lock is passed over
// after a second.
//
// A copy of a take that the network has made may join the queue when its caller has long left. The turn of that place
// of nobody ends as soon as its process is notified. If the process cannot be notified, the turn ends after a quarter
// of a second. Then the place is in the queue no more.

// A place is a process's in the queue of a key. The head of the line uses it, and leaves it to the next head when it
// gives up. So a process keeps its turn however impatient its callers are.
type place struct {
	notifier *notifier
	sweeper  *Sweeper
	options  *Options // of the head that made it
	queue    Queue    // its algorithm
	key      string
	name     string        // chosen when it is first used
	number   int           // counts all places of the notifier
	queued   bool          // it was in the queue after the last try
	notified chan struct{} // gets a value when the turn has come, or may have
	// maybeQueued: a try may have been done, so it may be in the queue, or still get there, all the same.
	maybeQueued bool
}

// isPlace reports whether a lock with this value is being given to a place. Otherwise it is held.
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

// forget is for a place that is in no queue any more.
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

// choose returns the name of the place. It is "" until it is known whether the place will be notified: before that,
// the lock might be won without the place, and be given to it later. The name changes once, if the subscription is gone
// and cannot be had again: a release that gave the lock to the old name would find that nobody listens, and pass it
// over forever.
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
	case n.starting.IsZero() || time.Since(n.starting) > subscribeTime: // there will be none for a while
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

// A process may pass a lock on among its own callers, for a while: long enough that a change of processes, some round
// trips and a message, does not count; short enough that others do not notice.
const (
	maxHolders = 33
	maxTime    = 10 * time.Millisecond
	// Other processes may wait without being in the queue: programs that poll, or earlier versions of this one. Now
	// and then they have their chance, too.
	maxTimeAlone = time.Second
)

// A Quota is how much of that while is used up.
type Quota struct {
	Began   time.Time // when the process asked for the lock
	Holders int       // that have had it since
	Others  bool      // other processes wait for it, as of the last round trip
}

// Over reports whether the lock must be released although callers of this process wait.
func (q Quota) Over(now time.Time) bool {
	if q.Others {
		return q.Holders >= maxHolders || now.Sub(q.Began) >= maxTime
	}
	return now.Sub(q.Began) >= maxTimeAlone
}
