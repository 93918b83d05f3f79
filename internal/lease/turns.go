package lease

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// The queue of a key is the processes that wait for it. It is a string in Redis, next to
// the lock; see queue.lua. A process has one place in it, however many of its callers wait. A
// release gives the lock to the first place and publishes that; the place's process then takes
// it over for one of its callers.
//
// The message is a hint and nothing else: what counts is the lock's value, which the process asks
// for when it is notified, and now and then without that. So a message that is lost costs a
// little time, and one too many does nothing. A process that has died does not listen and is
// passed over at once; one that listens and does not answer is passed over after a second.
//
// A copy of a take that the network has made may join the queue when its caller has long gone. The
// turn of that place of nobody ends as soon as its process is notified; if it is one that cannot be
// notified, after a quarter of a second. Then it is in the queue no more.

// A place is a process's in the queue of a key. The head of the line uses it, and leaves it
// to the next head when it gives up. So a process keeps its turn however impatient its callers are.
type place struct {
	notifier *notifier
	sweeper  *Sweeper
	options  *Options // of the head that made it
	queue    Queue    // its algorithm
	key      string
	name     string        // chosen when it is first used
	number   int           // of all that the process has had
	queued   bool          // it was in the queue after the last try
	notified chan struct{} // gets a value when the turn has come, or may have
	// ambiguous: a reply was lost, so it may be in the queue, or get there, all the same.
	ambiguous bool
}

// isPlace distinguishes the value of a lock that is being given to a place from that of
// one that is held.
func isPlace(value string) bool {
	return strings.HasPrefix(strings.TrimPrefix(value, "-"), channelPrefix)
}

// quit is the end of a place, which is taken out of the queue if it is there; first is as in
// sweep. Without a place it does nothing.
func (p *place) quit(first time.Duration) {
	if p == nil {
		return
	}
	p.leave()
	if p.name != "" {
		p.sweeper.sweep(p.options, first, p.ambiguous, func(ctx context.Context) bool {
			return p.queue.Quit(ctx, p.key, p.name) == nil
		})
	}
}

// leave is the end of a place, which is in no queue any more.
func (p *place) leave() {
	n := p.notifier
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.places, p.number)
	n.closeWhenIdle()
}

// ready returns a channel that is closed when it is known whether the place will be notified.
func (p *place) ready() <-chan struct{} {
	n := p.notifier
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ready
}

// isNotified reports whether the place will be notified when its turn has come. Otherwise
// it has to ask.
func (p *place) isNotified() bool {
	n := p.notifier
	n.mu.Lock()
	defer n.mu.Unlock()
	n.start()
	return n.subscription != nil && !strings.HasPrefix(p.name, "-")
}

// choose returns the name of the place, "" until it is known whether it will be notified:
// before, the lock might be won without it, and be given to it later. The name changes, once,
// if the subscription is gone and cannot be had again: a release that gave the lock to the old
// name would find that nobody listens, and pass it over forever.
func (p *place) choose() string {
	n := p.notifier
	n.mu.Lock()
	defer n.mu.Unlock()
	n.start()
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
	default: // it has not looked yet
	}
}
