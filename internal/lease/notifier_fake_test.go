package lease

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// fakePubSub is a Redis that can publish, and nothing else.
type fakePubSub struct {
	mu         sync.Mutex // guards all below
	open       []*fakeSubscription
	subscribed int
	takes      time.Duration // to subscribe
	denied     bool
	lossy      bool // messages count as heard, but get lost
}

type fakeSubscription struct {
	pubsub  *fakePubSub
	channel string
	heard   chan string
	closed  chan struct{}
	moved   atomic.Bool
}

func (e *fakePubSub) Subscribe(_ context.Context, channel string) (transport.Subscription, error) {
	e.mu.Lock()
	e.subscribed++
	takes := e.takes
	e.mu.Unlock()
	time.Sleep(takes)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.denied {
		return nil, errRefused
	}
	sub := &fakeSubscription{pubsub: e, channel: channel, heard: make(chan string, 10), closed: make(chan struct{})}
	e.open = append(e.open, sub)
	return sub, nil
}

func (e *fakePubSub) publish(place string) (heard int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, sub := range e.open {
		if sub.channel == place[:strings.LastIndex(place, "/")] {
			heard++
			if !e.lossy {
				sub.heard <- place
			}
		}
	}
	return heard
}

func (e *fakeSubscription) Receive() (string, error) {
	select {
	case m := <-e.heard:
		return m, nil
	case <-e.closed:
		if e.moved.Load() {
			return "", transport.ErrMoved
		}
		return "", errors.New("closed")
	}
}

func (e *fakeSubscription) Close() error {
	e.pubsub.mu.Lock()
	defer e.pubsub.mu.Unlock()
	if i := slices.Index(e.pubsub.open, e); i >= 0 {
		e.pubsub.open = slices.Delete(e.pubsub.open, i, i+1)
		close(e.closed)
	}
	return nil
}

// set changes how subscribing goes from now on.
func (e *fakePubSub) set(change func(e *fakePubSub)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(e)
}

// cut breaks all connections.
func (e *fakePubSub) cut() {
	for _, sub := range e.listeners() {
		sub.Close()
	}
}

func (e *fakePubSub) listeners() []*fakeSubscription {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.open)
}

// asked is how often a subscription was asked for.
func (e *fakePubSub) asked() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.subscribed
}
