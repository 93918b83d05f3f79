package lease

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// A fakeCluster publishes to channels in the slots of keys, and never to others.
type fakeCluster struct {
	fakePubSub
	transport.Client // which is not used
	single           bool
}

func (c *fakeCluster) IsCluster() bool { return !c.single }

func (c *fakeCluster) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	if !c.single {
		panic("a message to " + channel + " would not be counted")
	}
	return c.fakePubSub.Subscribe(ctx, channel)
}

func (c *fakeCluster) SubscribeShard(ctx context.Context, channel string) (transport.Subscription, error) {
	return c.fakePubSub.Subscribe(ctx, channel)
}

// move moves all slots to other nodes.
func (c *fakeCluster) move() {
	for _, sub := range c.listeners() {
		sub.moved.Store(true)
		sub.Close()
	}
}

func wantNoKeys(t *testing.T, n *Notifiers) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.keys) != 0 {
		t.Errorf("left: %v", n.keys)
	}
}

// On a cluster each key that is waited for has a channel of its own, in its slot, and nothing is left
// of that soon after the last place.
func TestNotifiersOfACluster(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var cluster fakeCluster
		n := NewNotifiers(&cluster)
		a, b, c := n.place("latchkey:{a}.lock"), n.place("latchkey:{b}.lock"), n.place("latchkey:{b}.lock")
		wantSubscriptions(t, &cluster.fakePubSub, 2, 2)
		for p, tag := range map[*place]string{a: "{a}", b: "{b}", c: "{b}"} {
			if name := p.choose(); !strings.HasPrefix(name, channelPrefix) || !strings.Contains(name, tag+"/") {
				t.Errorf("a place is called %s", name)
			}
		}
		if a.choose() == c.choose() || !n.listening("latchkey:{a}.lock") || n.listening("latchkey:{c}.lock") {
			t.Error("who listens for which key?")
		}
		cluster.publish(b.choose())
		if wasNotified(a) || !wasNotified(b) || wasNotified(c) {
			t.Error("the message is for b")
		}
		a.leave()
		b.leave()
		time.Sleep(idleTime)
		wantSubscriptions(t, &cluster.fakePubSub, 1, 2)
		c.leave()
		time.Sleep(idleTime)
		wantSubscriptions(t, &cluster.fakePubSub, 0, 2)
		wantNoKeys(t, n)
	})
}

// A place that comes for a key whose last one has just left listens to the same channel, under
// another name: the queue may still have the old one.
func TestNotifiersOfOneKeyFollowEachOther(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var cluster fakeCluster
		n := NewNotifiers(&cluster)
		names := make(map[string]bool)
		for _, pause := range []time.Duration{0, idleTime - 1, idleTime, idleTime + 1} {
			for range 10 {
				p := n.place("k")
				synctest.Wait()
				if name := p.choose(); names[name] || strings.HasPrefix(name, "-") {
					t.Errorf("a place is called %q", name)
				} else {
					names[name] = true
				}
				p.leave()
				time.Sleep(pause)
			}
		}
		n.close()
		wantSubscriptions(t, &cluster.fakePubSub, 0, cluster.asked())
	})
}

// When the slot of a key moves, its places ask, since they may have missed something, and have
// another subscription at once.
func TestNotifiersFollowSlots(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var cluster fakeCluster
		n := NewNotifiers(&cluster)
		p := n.place("k")
		synctest.Wait()
		name := p.choose()
		for i := range 3 {
			cluster.move()
			if !wasNotified(p) {
				t.Error("it does not ask")
			}
			p.choose()
			wantSubscriptions(t, &cluster.fakePubSub, 1, 2+i)
			if again := p.choose(); again != name {
				t.Errorf("it is %s, and was %s", again, name)
			}
		}
		p.leave()
		time.Sleep(idleTime)
		wantSubscriptions(t, &cluster.fakePubSub, 0, 4)
	})
}

// Without SSUBSCRIBE, or the right to it, places ask. It is not tried again for each of them.
func TestNotifiersWithoutShardedChannels(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var cluster fakeCluster
		cluster.denied = true
		n := NewNotifiers(&cluster)
		for range 10 {
			p := n.place("k")
			synctest.Wait()
			if name := p.choose(); !strings.HasPrefix(name, "-") || p.isNotified() {
				t.Errorf("a place is called %s", name)
			}
			p.leave()
			time.Sleep(idleTime)
		}
		wantSubscriptions(t, &cluster.fakePubSub, 0, 1)
		time.Sleep(retryTime)
		wantNoKeys(t, n)
	})
}

// A client of clusters may be that of one server. That is not a cluster.
func TestNotifiersOfOneServer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cluster := fakeCluster{single: true}
		n := NewNotifiers(&cluster)
		a, b := n.place("{a}"), n.place("{b}")
		wantSubscriptions(t, &cluster.fakePubSub, 1, 1)
		if strings.Contains(a.choose()+b.choose(), "{") {
			t.Error(a.choose(), b.choose())
		}
		a.leave()
		b.leave()
		n.close()
		wantSubscriptions(t, &cluster.fakePubSub, 0, 1)
	})
}

// Places that come after the end are not waited for.
func TestNotifiersAreClosed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var cluster fakeCluster
		n := NewNotifiers(&cluster)
		a := n.place("a")
		wantSubscriptions(t, &cluster.fakePubSub, 1, 1)
		n.close()
		b, c := n.place("a"), n.place("b")
		wantSubscriptions(t, &cluster.fakePubSub, 0, 1)
		for _, p := range []*place{a, b, c} {
			p.leave()
		}
	})
}

// The tag of a channel is what puts the key into its slot. A place must be one word.
func TestChannelTag(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"latchkey:{id}.lock": "{id}",
		"plain":              "{plain}",
		"{a}{b}":             "{a}",
		"a{b":                "{a{b}",
		"two {words}":        "{words}",
		"{}a":                "", // these get a number
		"a}b":                "",
		"two words":          "",
		"{two words}":        "",
		"line\n":             "",
		"":                   "",
	} {
		tag := channelTag(key)
		if want != "" && tag != want || slot(hashed(tag)) != slot(hashed(key)) || strings.ContainsAny(tag, " \n") {
			t.Errorf("%q: %q, want %q", key, tag, want)
		}
	}
}
