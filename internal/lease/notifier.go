package lease

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// channelPrefix begins the name of every channel.
const channelPrefix = "latchkey:wake:"

const (
	idleTime      = 200 * time.Millisecond // for which a subscription outlasts the last place: the next place comes soon
	retryTime     = 5 * time.Second        // until the next try, after a subscription has failed
	subscribeTime = 2 * time.Second        // for which a subscription is waited for, at most
)

// A notifier wakes places of one process when their turn has come, by one subscription to a channel that no other
// process has. The subscription, and the goroutine that receives from it, exist only while callers wait. They also end
// if a message that was due has not come, and when the Lines are closed.
type notifier struct {
	all     *Notifiers // to which it belongs
	key     string     // in byKey
	channel string

	mu           sync.Mutex // guards all below
	places       map[int]*place
	numbered     int                // how many places there were
	subscription *subscription      // nil while there is none
	starting     time.Time          // when a try to subscribe began; zero: none is under way
	ready        chan struct{}      // closed when that try has succeeded or failed
	cancel       context.CancelFunc // ends the subscription, or the try
	retry        time.Time          // no subscription is tried before
	idle         *time.Timer        // runs while there are no places
	closed       bool
}

type subscription struct {
	transport.Subscription
	received bool // it has received a message; guarded by the notifier's mu
}

// shutDown ends the subscription and the goroutine, for good.
func (n *notifier) shutDown() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	n.unsubscribe()
	if n.idle != nil {
		n.idle.Stop()
	}
}

// stopWhenIdle ends the subscription a while after the last place has gone. It is called with mu held, when places may
// be empty.
func (n *notifier) stopWhenIdle() {
	if len(n.places) > 0 || n.closed {
		return
	}
	if n.idle != nil {
		n.idle.Stop()
	}
	// Until retry, a notifier is not forgotten.
	n.idle = time.AfterFunc(max(idleTime, time.Until(n.retry)), func() {
		n.mu.Lock()
		if len(n.places) == 0 && n.subscription != nil {
			n.unsubscribe()
		}
		n.mu.Unlock()
		n.all.forget(n)
	})
}

// resubscribe ends a subscription that has missed a message.
func (n *notifier) resubscribe() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.drop(n.subscription)
}

// drop ends s, which has failed. If s has never received anything, the next subscription probably will not either, so
// it waits for retryTime. drop is called with mu held.
func (n *notifier) drop(s *subscription) {
	if s != nil && s == n.subscription {
		n.unsubscribe()
		if !s.received {
			n.retry = time.Now().Add(retryTime)
		}
	}
}

// unsubscribe ends the subscription. It is called with mu held.
func (n *notifier) unsubscribe() {
	n.subscription = nil
	n.cancel()
}

// subscribeOnce begins a subscription, unless there is one or none can be had now. It is called with mu held.
func (n *notifier) subscribeOnce() {
	if n.subscription == nil && n.starting.IsZero() && !n.closed && !time.Now().Before(n.retry) {
		var ctx context.Context
		ctx, n.cancel = context.WithCancel(context.Background())
		n.starting, n.ready = time.Now(), make(chan struct{})
		go n.listen(ctx, n.cancel)
	}
}

// listen is the goroutine of one subscription, until ctx ends or the connection breaks. Everything that must happen
// after a call of the client is deferred, since the client may end the goroutine.
func (n *notifier) listen(ctx context.Context, cancel context.CancelFunc) {
	defer cancel()
	s := n.begin(ctx)
	if s == nil {
		return
	}
	// Close makes Receive end. It may take a while, so it is called without mu.
	context.AfterFunc(ctx, func() { _ = s.Close() })
	var err error
	defer func() { n.subscriptionEnded(s, err) }()
	for err == nil {
		var message string
		message, err = s.Receive()
		if err == nil {
			n.notify(s, message)
		}
	}
}

// begin subscribes. It returns nil if that fails.
func (n *notifier) begin(ctx context.Context) (s *subscription) {
	ctx, cancel := context.WithTimeout(ctx, subscribeTime)
	defer cancel()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		switch {
		case s == nil:
			n.retry = time.Now().Add(retryTime)
		case !n.closed:
			n.subscription = s
		}
		n.starting = time.Time{}
		close(n.ready)
		n.stopWhenIdle()
	}()
	subscribe := n.all.subscriber.Subscribe
	if n.key != "" {
		subscribe = n.all.subscriber.SubscribeShard
	}
	subscribed, err := subscribe(ctx, n.channel)
	if err == nil {
		s = &subscription{Subscription: subscribed}
	}
	return s
}

// subscriptionEnded is called when nothing more is received from s.
func (n *notifier) subscriptionEnded(s *subscription, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s.received = s.received || errors.Is(err, transport.ErrMoved) // the next subscription will work as well
	n.drop(s)
	// It is not known which of the places should have been notified. First come, first served.
	for _, number := range slices.Sorted(maps.Keys(n.places)) {
		n.places[number].notify()
	}
}

// notify wakes the place that a message names. If the place has left, it quits the queue again: a copy of its take may
// have put it there again.
func (n *notifier) notify(s *subscription, message string) {
	name, key, _ := strings.Cut(message, " ")
	n.mu.Lock()
	defer n.mu.Unlock()
	s.received = true
	number, _ := strconv.Atoi(strings.TrimPrefix(name, n.channel+"/")) // 0 if it is not a place of this notifier
	switch p := n.places[number]; {
	case p != nil:
		p.notify()
	case number > 0 && !n.closed:
		go func() { _ = n.all.quit(context.Background(), key, name) }() // if that fails, the turn ends by itself
	}
}

// newPlace returns a new place. It must quit, or be forgotten.
func (n *notifier) newPlace() *place {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.numbered++
	p := &place{notifier: n, number: n.numbered, notified: make(chan struct{}, 1)}
	n.places[p.number] = p
	if n.idle != nil {
		n.idle.Stop()
	}
	n.subscribeOnce()
	return p
}
