package scripting

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"
)

// A Subscription is to one channel of Redis. Receive is called by one goroutine
// at a time, Close by any, which ends a Receive that is under way.
type Subscription interface {
	// Receive waits for the next message. After an error there is none any more.
	Receive() (string, error)
	Close() error
}

// Subscribe subscribes to a channel, on a connection that is not one of the pool.
// ctx bounds the time that takes.
func (c *Runner) Subscribe(ctx context.Context, channel string) (Subscription, error) {
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: no connection: %w", ErrUnavailable, err)
	}
	s := subscription{redis.PubSubConn{Conn: conn}}
	if err := s.begin(ctx, channel); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: subscribing: %w", ErrUnavailable, err), conn.Close())
	}
	return s, nil
}

func (c *Runner) dial(ctx context.Context) (redis.Conn, error) {
	switch {
	case c.pool == nil:
		return nil, errors.New("the pool is nil")
	case c.pool.DialContext != nil:
		return c.pool.DialContext(ctx)
	case c.pool.Dial != nil:
		return c.pool.Dial()
	}
	return nil, errors.New("the pool cannot dial")
}

type subscription struct{ redis.PubSubConn }

func (s subscription) begin(ctx context.Context, channel string) error {
	if err := s.Subscribe(channel); err != nil {
		return err
	}
	left := time.Minute
	if end, ok := ctx.Deadline(); ok {
		left = max(time.Until(end), 1) // 0 would be no limit
	}
	switch answer := s.ReceiveWithTimeout(left).(type) {
	case error:
		return answer
	case redis.Subscription:
		return nil
	default:
		return fmt.Errorf("unexpected answer %T", answer)
	}
}

// Receive waits for as long as the connection lasts.
func (s subscription) Receive() (string, error) {
	for {
		switch m := s.ReceiveWithTimeout(0).(type) {
		case error:
			return "", m
		case redis.Message:
			return string(m.Data), nil
		}
	}
}
