package lease

import (
	"context"
	"strings"
	"sync"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// Notifiers wake the places of one process. There is one for all keys: one subscription. On a
// cluster a message is counted only by the node to which it is published, and only those that listen
// there are counted. So there each key that is waited for has its own, which listens to a channel
// in the key's slot, and a script that frees the lock publishes to it by SPUBLISH.
type Notifiers struct {
	subscriber Subscriber
	shared     *notifier // of all keys, where it is no cluster

	mu     sync.Mutex // guards the rest; before that of a notifier
	keys   map[string]*notifier
	closed bool
}

// A Subscriber is what Notifiers need of a [scripting.Runner]. Its SubscribeShard is for clusters.
type Subscriber interface {
	IsCluster() bool
	Subscribe(ctx context.Context, channel string) (transport.Subscription, error)
	SubscribeShard(ctx context.Context, channel string) (transport.Subscription, error)
}

// NewNotifiers returns Notifiers that have not subscribed yet.
func NewNotifiers(s Subscriber) *Notifiers {
	return &Notifiers{subscriber: s, shared: newNotifier("", s.Subscribe, func() {}), keys: make(map[string]*notifier)}
}

// place returns a new place for the lock of key, which must leave.
func (n *Notifiers) place(key string) *place {
	if !n.subscriber.IsCluster() {
		return n.shared.place()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	own := n.keys[key]
	if own == nil {
		own = n.newFor(key)
		n.keys[key] = own
		if n.closed {
			own.close()
		}
	}
	return own.place()
}

// listening reports whether a place would be notified at once.
func (n *Notifiers) listening(key string) bool {
	if !n.subscriber.IsCluster() {
		return n.shared.listening()
	}
	n.mu.Lock()
	own := n.keys[key]
	n.mu.Unlock()
	return own != nil && own.listening()
}

// newFor returns a notifier for one key. It is called with mu held.
func (n *Notifiers) newFor(key string) *notifier {
	var own *notifier
	unused := func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if own.isUnused() && n.keys[key] == own {
			delete(n.keys, key)
		}
	}
	own = newNotifier(channelTag(key), n.subscriber.SubscribeShard, unused)
	return own
}

// channelTag puts a channel into the slot of key. A place, of which the channel is a part, is one
// word in the queue.
func channelTag(key string) string {
	tag, _ := HashTag(key)
	if strings.ContainsAny(tag, " \t\n\v\f\r\x00") {
		tag = numberIn(slot(tag))
	}
	return "{" + tag + "}"
}

// close ends all subscriptions and goroutines, for good.
func (n *Notifiers) close() {
	n.shared.close()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	for _, own := range n.keys {
		own.close()
	}
}
