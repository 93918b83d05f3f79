package transport

import (
	"context"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Subscribe subscribes to a channel, on a connection of its own.
func (c *Redigo) Subscribe(ctx context.Context, channel string) (Subscription, error) {
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return nil, unsent(errClosed)
	}
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, unsent(err)
	}
	left := c.timeout
	if end, ok := ctx.Deadline(); ok {
		left = min(left, max(time.Until(end), 1)) // 0 would be no limit
	}
	s := subscription{redis.PubSubConn{Conn: conn}}
	if err = s.Subscribe(channel); err == nil {
		err, _ = s.ReceiveWithTimeout(left).(error)
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("%w: subscribing: %w", ErrUnavailable, err)
	}
	return s, nil
}

type subscription struct{ redis.PubSubConn }

// Receive waits for as long as the connection lasts.
func (s subscription) Receive() (string, error) {
	for {
		switch m := s.ReceiveWithTimeout(0).(type) {
		case error:
			return "", fmt.Errorf("%w: %w", ErrUnavailable, m)
		case redis.Message:
			return string(m.Data), nil
		}
	}
}
