package lease

import (
	"context"
	"crypto/rand"
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
	idleTime      = 200 * time.Millisecond // a subscription outlasts the last place: the next comes soon
	retryTime     = 5 * time.Second        // nobody subscribes again after that has failed
	subscribeTime = 2 * time.Second        // to wait for a subscription, at most
)

// A notifier wakes places of one process when their turn has come, by one subscription to a
// channel of its own. That and the goroutine which receives from it exist only while somebody
// waits. They also end when a message that was due has not come, and when the Group is closed.
type notifier struct {
	channel   string
	subscribe func(ctx context.Context, channel string) (transport.Subscription, error)
	unused    func() // called without mu, now and then, while there are no places

	mu           sync.Mutex // guards all below
	places       map[int]*place
	numbered     int                // places, ever
	subscription *subscription      // nil while there is none
	starting     time.Time          // since when there is about to be one; zero: it is not
	ready        chan struct{}      // closed when that has ended
	cancel       context.CancelFunc // ends the subscription, also one that is starting
	retry        time.Time          // not to be tried before
	idle         *time.Timer        // runs while there are no places
	closed       bool
}

type subscription struct {
	transport.Subscription
	received bool // anything at all; guarded by the notifier's mu
}

// newNotifier returns a notifier that has not subscribed yet. tag ends its channel.
func newNotifier(tag string, subscribe func(context.Context, string) (transport.Subscription, error), unused func()) *notifier {
	return &notifier{
		channel:   channelPrefix + rand.Text() + tag,
		subscribe: subscribe,
		unused:    unused,
		places:    make(map[int]*place),
		cancel:    func() {},
	}
}

// close ends the subscription and the goroutine, for good.
func (n *notifier) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	n.end()
	if n.idle != nil {
		n.idle.Stop()
	}
}

// listening reports whether a place would be notified at once.
func (n *notifier) listening() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.subscription != nil
}

// closeWhenIdle is called with mu held, when there may be nobody left to notify.
func (n *notifier) closeWhenIdle() {
	if len(n.places) > 0 || n.closed {
		return
	}
	if n.idle != nil {
		n.idle.Stop()
	}
	// While it is not to be tried again, that is not forgotten.
	n.idle = time.AfterFunc(max(idleTime, time.Until(n.retry)), func() {
		n.mu.Lock()
		if len(n.places) == 0 && n.subscription != nil {
			n.end()
		}
		n.mu.Unlock()
		n.unused()
	})
}

// isUnused reports whether nothing is lost with it.
func (n *notifier) isUnused() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.places) == 0 && n.subscription == nil && n.starting.IsZero()
}

// replace ends a subscription that has missed a message.
func (n *notifier) replace() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.drop(n.subscription)
}

// drop is called with mu held, when s has failed. Where it has never received anything, the
// next one is not likely to.
func (n *notifier) drop(s *subscription) {
	if s != nil && s == n.subscription {
		n.end()
		if !s.received {
			n.retry = time.Now().Add(retryTime)
		}
	}
}

// end ends the subscription. It is called with mu held.
func (n *notifier) end() {
	n.subscription = nil
	n.cancel()
}

// start is called with mu held. It does nothing if there is a subscription, or cannot be one now.
func (n *notifier) start() {
	if n.subscription == nil && n.starting.IsZero() && !n.closed && !time.Now().Before(n.retry) {
		var ctx context.Context
		ctx, n.cancel = context.WithCancel(context.Background())
		n.starting, n.ready = time.Now(), make(chan struct{})
		go n.listen(ctx, n.cancel)
	}
}

// listen is the goroutine of one subscription, until ctx ends or the connection breaks. What follows
// a call of the client is deferred, since that may end the goroutine.
func (n *notifier) listen(ctx context.Context, cancel context.CancelFunc) {
	defer cancel()
	s := n.subscribed(ctx)
	if s == nil {
		return
	}
	// Close makes Receive end. It may take a while, so mu is not held meanwhile.
	context.AfterFunc(ctx, func() { _ = s.Close() })
	var err error
	defer func() { n.ended(s, err) }()
	for err == nil {
		var name string
		if name, err = s.Receive(); err == nil {
			n.notify(s, name)
		}
	}
}

// subscribed subscribes, and returns nil where that fails.
func (n *notifier) subscribed(ctx context.Context) (s *subscription) {
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
		n.closeWhenIdle()
	}()
	subscribed, err := n.subscribe(ctx, n.channel)
	if err == nil {
		s = &subscription{Subscription: subscribed}
	}
	return s
}

// ended is called when nothing more is received.
func (n *notifier) ended(s *subscription, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s.received = s.received || errors.Is(err, transport.ErrMoved) // the next one is as good
	n.drop(s)
	// Which of them it should have notified is not known. First come, first served.
	for _, number := range slices.Sorted(maps.Keys(n.places)) {
		n.places[number].notify()
	}
}

// notify wakes the place that a message names.
func (n *notifier) notify(s *subscription, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s.received = true
	number, _ := strconv.Atoi(strings.TrimPrefix(name, n.channel+"/")) // 0, which is nobody's, if it is no place of ours
	if p := n.places[number]; p != nil {
		p.notify()
	}
}

// place returns a new place, which must leave.
func (n *notifier) place() *place {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.numbered++
	p := &place{notifier: n, number: n.numbered, notified: make(chan struct{}, 1)}
	n.places[p.number] = p
	if n.idle != nil {
		n.idle.Stop()
	}
	n.start()
	return p
}
