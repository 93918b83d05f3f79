// Package goredis is a [transport.Client] over go-redis, for one server, Sentinel or Cluster. It
// shows how little such a client needs, and is there to be copied.
package goredis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/redis/go-redis/v9"
)

// A Client uses a go-redis client, whose options must have ContextTimeoutEnabled, so that a
// deadline counts, and MaxRetries: -1, since what repeats is above. Dialling may take no longer
// than Timeout.
type Client struct {
	Redis   redis.UniversalClient
	Timeout time.Duration // of an exchange
}

// Do is described in [transport.Client]. All commands go to the node of the first one's keys.
func (c Client) Do(ctx context.Context, _ string, commands ...transport.Command) ([]any, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", transport.ErrRefused, err)
	}
	end := time.Now().Add(c.Timeout)
	if sooner, ok := ctx.Deadline(); ok && sooner.Before(end) {
		end = sooner
	}
	// To cancel would break off what was sent.
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), end)
	defer cancel()
	cmds, err := c.Redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, command := range commands {
			p.Do(ctx, command...)
		}
		return nil
	})
	replies := make([]any, len(commands))
	for i := range commands {
		if i >= len(cmds) {
			return nil, failed(err)
		}
		reply, err := cmds[i].(*redis.Cmd).Result()
		switch refusal, refused := errors.AsType[redis.Error](err); {
		case err == nil, errors.Is(err, redis.Nil):
			replies[i] = reply
		case refused:
			replies[i] = refusal
		default:
			return nil, failed(err)
		}
	}
	return replies, nil
}

// failed returns the error of an exchange without replies. Without a connection nothing was sent.
func failed(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" ||
		errors.Is(err, redis.ErrClosed) || errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) {
		return fmt.Errorf("%w: no connection: %w", transport.ErrRefused, err)
	}
	return fmt.Errorf("%w: %w", transport.ErrUnavailable, err)
}

// Subscribe is described in [transport.Client].
func (c Client) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	s := c.Redis.Subscribe(ctx, channel)
	if _, err := s.Receive(ctx); err != nil { // the confirmation
		_ = s.Close()
		return nil, failed(err)
	}
	return subscription{s}, nil
}

type subscription struct{ *redis.PubSub }

// Receive waits for the next message.
func (s subscription) Receive() (string, error) {
	m, err := s.ReceiveMessage(context.Background())
	if err != nil {
		return "", failed(err)
	}
	return m.Payload, nil
}
