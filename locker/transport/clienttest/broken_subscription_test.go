package clienttest

import (
	"context"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// A subscription that is broken.
type brokenSubscription struct {
	transport.Subscription
	receive func() (string, error)
	close   func() error
}

func (b brokenSubscription) Receive() (string, error) { return b.receive() }
func (b brokenSubscription) Close() error             { return b.close() }

func subscribing(change func(ctx context.Context, s *brokenSubscription)) broken {
	return broken{subscribe: func(ctx context.Context, c *transport.Redigo, channel string) (transport.Subscription, error) {
		s, err := c.Subscribe(ctx, channel)
		if err != nil {
			return nil, err
		}
		b := &brokenSubscription{s, s.Receive, s.Close}
		change(ctx, b)
		return b, nil
	}}
}

func losesMessages() broken {
	return subscribing(func(_ context.Context, s *brokenSubscription) {
		s.receive = func() (string, error) {
			if message, err := s.Subscription.Receive(); !strings.HasPrefix(message, "7") {
				return message, err
			}
			return s.Subscription.Receive()
		}
	})
}

func listensToAll() broken {
	return broken{subscribe: func(ctx context.Context, c *transport.Redigo, _ string) (transport.Subscription, error) {
		return c.Subscribe(ctx, "another")
	}}
}

// closesNever waits for ever, whatever happens, or for as long as a test may.
func closesNever() broken {
	return subscribing(func(_ context.Context, s *brokenSubscription) {
		s.receive = func() (string, error) {
			message, err := s.Subscription.Receive()
			time.Sleep(patience + time.Second)
			return message, err
		}
	})
}

func endsWithContext() broken {
	return subscribing(func(ctx context.Context, s *brokenSubscription) {
		context.AfterFunc(ctx, func() { s.Subscription.Close() })
	})
}

func subscribesAnyway() broken {
	return broken{subscribe: func(ctx context.Context, c *transport.Redigo, channel string) (transport.Subscription, error) {
		return brokenSubscription{nil, nil, func() error { return nil }}, nil
	}}
}
