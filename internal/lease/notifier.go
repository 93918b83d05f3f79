package lease

import (
	"context"
	"crypto/rand"
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
	idleTime      = 200 * time.Millisecond // a subscription outlasts the last place: the next comes soon
	retryTime     = 5 * time.Second        // nobody subscribes again after that has failed
	subscribeTime = 2 * time.Second        // to wait for a subscription, at most
)

// A Notifier wakes the places of one process when their turn has come, by one subscription to
// a channel of its own. That and the goroutine which receives from it exist only while somebody
// waits. They also end when a message that was due has not come, and when the Group is closed.
type Notifier struct {
	subscriber Subscriber
	channel    string

	mu           sync.Mutex // guards all below
	places       map[int]*place
	numbered     int                // places, ever
	subscription *subscription      // nil while there is none
	starting     time.Time          // since when there is about to be one; zero: it is not
	ready        chan struct{}      // closed when that has ended
	cancel       context.CancelFunc // ends the subscription, also one that is starting
	retry        time.Time          // not to be tried before
	idle         *time.Timer        // ends a subscription that nobody needs
	closed       bool
}

// A Subscriber is the part of a [transport.Client] that a Notifier needs.
type Subscriber interface {
	Subscribe(ctx context.Context, channel string) (transport.Subscription, error)
}

type subscription struct {
	transport.Subscription
	received bool // anything at all; guarded by the notifier's mu
}

// NewNotifier returns a Notifier that has not subscribed yet.
func NewNotifier(s Subscriber) *Notifier {
	return &Notifier{subscriber: s, channel: channelPrefix + rand.Text(), places: make(map[int]*place), cancel: func() {}}
}

// close ends the subscription and the goroutine, for good.
func (n *Notifier) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	n.end()
}

// listening reports whether a place would be notified at once.
func (n *Notifier) listening() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.subscription != nil
}

// closeWhenIdle is called with mu held, when there may be nobody left to notify.
func (n *Notifier) closeWhenIdle() {
	if len(n.places) == 0 && n.subscription != nil {
		n.idle = time.AfterFunc(idleTime, func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			if len(n.places) == 0 && n.subscription != nil {
				n.end()
			}
		})
	}
}

// replace ends a subscription that has missed a message.
func (n *Notifier) replace() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.drop(n.subscription)
}

// drop is called with mu held, when s has failed. Where it has never received anything, the
// next one is not likely to.
func (n *Notifier) drop(s *subscription) {
	if s != nil && s == n.subscription {
		n.end()
		if !s.received {
			n.retry = time.Now().Add(retryTime)
		}
	}
}

// end ends the subscription. It is called with mu held.
func (n *Notifier) end() {
	n.subscription = nil
	n.cancel()
}

// subscribe is called with mu held.
func (n *Notifier) subscribe() {
	if n.subscription == nil && n.starting.IsZero() && !n.closed && !time.Now().Before(n.retry) {
		var ctx context.Context
		ctx, n.cancel = context.WithCancel(context.Background())
		n.starting, n.ready = time.Now(), make(chan struct{})
		go n.listen(ctx, n.cancel)
	}
}

// listen is the goroutine of one subscription, until ctx ends or the connection breaks.
func (n *Notifier) listen(ctx context.Context, cancel context.CancelFunc) {
	defer cancel()
	starting, started := context.WithTimeout(ctx, subscribeTime)
	subscribed, err := n.subscriber.Subscribe(starting, n.channel)
	started()
	s := &subscription{Subscription: subscribed}
	n.mu.Lock()
	switch {
	case err != nil:
		n.retry = time.Now().Add(retryTime)
	case !n.closed:
		n.subscription = s
	}
	n.starting = time.Time{}
	close(n.ready)
	n.closeWhenIdle()
	n.mu.Unlock()
	if err != nil {
		return
	}

	// Close makes Receive end. It may take a while, so mu is not held meanwhile.
	context.AfterFunc(ctx, func() { _ = s.Close() })
	for err == nil {
		var name string
		if name, err = s.Receive(); err == nil {
			n.notify(s, name)
		}
	}

	n.mu.Lock()
	defer n.mu.Unlock()
	n.drop(s)
	// Which of them it should have notified is not known. First come, first served.
	for _, number := range slices.Sorted(maps.Keys(n.places)) {
		n.places[number].notify()
	}
}

// notify wakes the place that a message names.
func (n *Notifier) notify(s *subscription, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s.received = true
	number, _ := strconv.Atoi(strings.TrimPrefix(name, n.channel+"/")) // 0, which is nobody's, if it is no place of ours
	if p := n.places[number]; p != nil {
		p.notify()
	}
}

// place returns a new place, which must leave.
func (n *Notifier) place() *place {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.numbered++
	p := &place{notifier: n, number: n.numbered, notified: make(chan struct{}, 1)}
	n.places[p.number] = p
	if n.idle != nil {
		n.idle.Stop()
	}
	n.subscribe()
	return p
}
