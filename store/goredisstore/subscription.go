package goredisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/redis/go-redis/v9"
)

// A subscription has a connection to itself, and ends with it.
type subscription struct{ messages *redis.PubSub }

// subscribing subscribes by SUBSCRIBE or SSUBSCRIBE.
type subscribing func(messages *redis.PubSub, ctx context.Context, channels ...string) error

// subscribe subscribes to a channel at one server.
func subscribe(
	ctx context.Context, server *redis.Client, by subscribing, channel string,
) (transport.Subscription, error) {
	messages := server.Subscribe(ctx) // to no channel yet, so errors come from the next call
	err := by(messages, ctx, channel)
	if err == nil {
		_, err = messages.Receive(ctx) // the confirmation
	}
	if err != nil {
		_ = messages.Close()
		return nil, failed(err)
	}
	return subscription{messages}, nil
}

// over is a context that has ended. If a connection has broken, go-redis connects and subscribes again, and
// messages that were published in between are missed unnoticed. With this context go-redis receives, since
// the context has no deadline, but does not connect.
var over = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// Receive waits for the next message.
func (s subscription) Receive() (string, error) {
	for {
		received, err := s.messages.Receive(over)
		switch m := received.(type) {
		case *redis.Message:
			return m.Payload, nil
		case *redis.Subscription: // its end, which was not requested here
			return "", transport.ErrMoved
		}
		if err != nil {
			return "", failed(err)
		}
	}
}

// Close ends the subscription.
func (s subscription) Close() error {
	if err := s.messages.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
		return fmt.Errorf("goredisstore: %w", err)
	}
	return nil
}
