package transport

import (
	"context"
	"errors"
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
		return nil, Refused(errClosed)
	}
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, Refused(err)
	}
	s := subscription{redis.PubSubConn{Conn: conn}}
	if err := s.begin(ctx, channel); err != nil {
		return nil, Unavailable(errors.Join(fmt.Errorf("subscribing: %w", err), conn.Close()))
	}
	return s, nil
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
			return "", Unavailable(m)
		case redis.Message:
			return string(m.Data), nil
		}
	}
}
