package lease

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// Notifiers wake the places of one process. One notifier, with one subscription, serves all keys. On a cluster,
// publishing a message returns only how many subscribers of that node have received it. So on a cluster each key that
// is waited for has its own notifier. It listens to a channel in the key's slot, and a script that releases the lock
// publishes to that channel by SPUBLISH.
type Notifiers struct {
	subscriber Subscriber
	quit       func(ctx context.Context, key, place string) error

	mu     sync.Mutex // guards the rest; before that of a notifier
	byKey  map[string]*notifier
	closed bool
}

// A Subscriber is what Notifiers need of a [scripting.Runner]. Its SubscribeShard is for clusters.
type Subscriber interface {
	IsCluster() bool
	Subscribe(ctx context.Context, channel string) (transport.Subscription, error)
	SubscribeShard(ctx context.Context, channel string) (transport.Subscription, error)
}

// NewNotifiers returns Notifiers that have not subscribed yet. quit is that of the [Queue].
func NewNotifiers(s Subscriber, quit func(ctx context.Context, key, place string) error) *Notifiers {
	return &Notifiers{subscriber: s, quit: quit, byKey: make(map[string]*notifier)}
}

// placeFor returns a new place for the lock of key. It must quit, or be forgotten.
func (n *Notifiers) placeFor(key string) *place {
	key = n.keyOf(key)
	n.mu.Lock()
	defer n.mu.Unlock()
	own := n.byKey[key]
	if own == nil {
		own = &notifier{all: n, key: key, channel: channelPrefix + rand.Text(), closed: n.closed,
			places: make(map[int]*place), cancel: func() {}}
		if key != "" {
			own.channel += channelTag(key)
		}
		n.byKey[key] = own
	}
	return own.newPlace()
}

// keyOf returns the key in byKey of the notifier for the lock of key.
func (n *Notifiers) keyOf(key string) string {
	if n.subscriber.IsCluster() {
		return key
	}
	return ""
}

// listening reports whether a place would be notified at once.
func (n *Notifiers) listening(key string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.byKey) == 0 { // nearly always: no caller waits
		return false
	}
	own := n.byKey[n.keyOf(key)]
	if own == nil {
		return false
	}
	own.mu.Lock()
	defer own.mu.Unlock()
	return own.subscription != nil
}

// forget removes a notifier, if nothing is lost with it.
func (n *Notifiers) forget(own *notifier) {
	n.mu.Lock()
	defer n.mu.Unlock()
	own.mu.Lock()
	defer own.mu.Unlock()
	if len(own.places) == 0 && own.subscription == nil && own.starting.IsZero() && n.byKey[own.key] == own {
		delete(n.byKey, own.key)
	}
}

// channelTag returns the end of a channel's name. It puts the channel into the slot of key. The channel is part of a
// place's name, which is one word in the queue, so the tag has no white space.
func channelTag(key string) string {
	tag, _ := HashTag(key)
	if strings.ContainsAny(tag, " \t\n\v\f\r\x00") {
		tag = numberIn(slot(tag))
	}
	return "{" + tag + "}"
}

// shutDown ends all subscriptions and goroutines, for good.
func (n *Notifiers) shutDown() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	for _, own := range n.byKey {
		own.shutDown()
	}
}
