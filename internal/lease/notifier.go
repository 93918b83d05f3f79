package lease

import (
	"cmp"
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
	// idleTime is how long a subscription outlasts the last place: in a crowd, the
	// next one comes soon.
	idleTime = 200 * time.Millisecond
	// retryTime is how long nobody subscribes again after that has failed.
	retryTime = 5 * time.Second
	// subscribeTime is the longest time to wait for a subscription.
	subscribeTime = 2 * time.Second
)

// A Notifier wakes the places of one process when their turn has come. It has one
// subscription to a channel of its own, for all keys. The subscription has a connection of
// its own, too, which exists only while somebody waits.
//
// A goroutine receives from it. It ends with the connection, which is closed when nobody
// has waited for a moment, when a message that was due has not come, or when the Group is closed.
type Notifier struct {
	subscriber Subscriber
	channel    string

	mu           sync.Mutex // guards all below
	places       map[string]*place
	numbered     int                // places, ever
	subscription *subscription      // nil while there is none
	starting     time.Time          // since when there is about to be one; zero: it is not
	cancel       context.CancelFunc // ends that
	ready        chan struct{}      // closed when that has ended
	retry        time.Time          // not to be tried before
	idle         *time.Timer        // ends a subscription that nobody needs
	closed       bool
}

// A Subscriber is the part of a [scripting.Runner] that a Notifier needs.
type Subscriber interface {
	Subscribe(ctx context.Context, channel string) (transport.Subscription, error)
}

type subscription struct {
	transport.Subscription
	received bool // anything at all; guarded by the notifier's mu
}

// NewNotifier returns a Notifier that has not subscribed yet.
func NewNotifier(s Subscriber) *Notifier {
	return &Notifier{subscriber: s, channel: channelPrefix + rand.Text(), places: make(map[string]*place)}
}

// close ends the subscription and the goroutine, for good.
func (n *Notifier) close() {
	n.mu.Lock()
	n.closed = true
	s := n.subscription
	n.subscription = nil
	if n.cancel != nil {
		n.cancel()
	}
	if n.idle != nil {
		n.idle.Stop()
	}
	n.mu.Unlock()
	s.end()
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
		n.idle = time.AfterFunc(idleTime, n.closeIdle)
	}
}

func (n *Notifier) closeIdle() {
	n.mu.Lock()
	var s *subscription
	if len(n.places) == 0 {
		s, n.subscription = n.subscription, nil
	}
	n.mu.Unlock()
	s.end()
}

// replace ends a subscription that has not received what it should have.
func (n *Notifier) replace() {
	n.mu.Lock()
	s := n.subscription
	n.drop(s)
	n.mu.Unlock()
	s.end()
}

// drop is called with mu held, when s has failed. Where it has never
// received anything, the next one is not likely to.
func (n *Notifier) drop(s *subscription) {
	if s != nil && s == n.subscription {
		n.subscription = nil
		if !s.received {
			n.retry = time.Now().Add(retryTime)
		}
	}
}

// end makes listen end. It may take a while, so it is called without mu.
func (s *subscription) end() {
	if s != nil {
		_ = s.Close()
	}
}

// unavailable reports whether there will be no subscription for a while. It is called with
// mu held.
func (n *Notifier) unavailable() bool {
	return n.subscription == nil && (n.starting.IsZero() || time.Since(n.starting) > subscribeTime)
}

// subscribe is called with mu held.
func (n *Notifier) subscribe() {
	if n.subscription == nil && n.starting.IsZero() && !n.closed && !time.Now().Before(n.retry) {
		var ctx context.Context
		ctx, n.cancel = context.WithTimeout(context.Background(), subscribeTime)
		n.starting, n.ready = time.Now(), make(chan struct{})
		go n.listen(ctx)
	}
}

// listen is the goroutine of one subscription.
func (n *Notifier) listen(ctx context.Context) {
	subscribed, err := n.subscriber.Subscribe(ctx, n.channel)
	s := &subscription{Subscription: subscribed}
	n.mu.Lock()
	n.cancel()
	switch {
	case err != nil:
		n.retry = time.Now().Add(retryTime)
	case !n.closed:
		n.subscription = s
	}
	n.starting = time.Time{}
	close(n.ready)
	n.closeWhenIdle()
	closed := n.closed
	n.mu.Unlock()
	if err != nil {
		return
	}

	for err == nil && !closed {
		var name string
		if name, err = s.Receive(); err == nil {
			n.notify(s, name)
		}
	}
	s.end()

	n.mu.Lock()
	defer n.mu.Unlock()
	n.drop(s)
	// Which of them it should have notified is not known. First come, first served.
	for _, p := range slices.SortedFunc(maps.Values(n.places), func(p, q *place) int { return cmp.Compare(p.number, q.number) }) {
		p.notify()
	}
}

// notify wakes the place that a message names.
func (n *Notifier) notify(s *subscription, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s.received = true
	if tail, ours := strings.CutPrefix(name, n.channel); ours && n.places[tail] != nil {
		n.places[tail].notify()
	}
}

// place returns a new place, which must leave.
func (n *Notifier) place() *place {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.numbered++
	p := &place{notifier: n, number: n.numbered, tail: "/" + strconv.Itoa(n.numbered), notified: make(chan struct{}, 1)}
	n.places[p.tail] = p
	if n.idle != nil {
		n.idle.Stop()
	}
	n.subscribe()
	return p
}
