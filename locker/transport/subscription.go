package transport

import (
	"context"
	"fmt"

	"github.com/gomodule/redigo/redis"
)

// Subscribe subscribes to a channel, on a separate connection.
func (c *Redigo) Subscribe(ctx context.Context, channel string) (Subscription, error) {
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return nil, unsent(ErrClosed)
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, unsent(err)
	}
	stop := context.AfterFunc(ctx, func() { hangUp(conn) })
	s := subscription{redis.PubSubConn{Conn: conn}}
	err = s.Subscribe(channel)
	if err == nil {
		_, err = s.receive()
	}
	if !stop() {
		err = ctx.Err() // hence the connection is closed
	}
	if err != nil {
		hangUp(conn)
		return nil, fmt.Errorf("%w: subscribing: %w", ErrUnavailable, err)
	}
	return s, nil
}

type subscription struct{ redis.PubSubConn }

// Receive waits for a message, for as long as the connection lasts.
func (s subscription) Receive() (string, error) {
	for {
		got, err := s.receive()
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		if m, ok := got.(redis.Message); ok {
			return string(m.Data), nil
		}
	}
}

// receive waits for a message, or for a confirmation by Redis.
func (s subscription) receive() (got any, err error) {
	defer recovered(&err) // redigo panics if a message is absurd
	got = s.ReceiveWithTimeout(0)
	err, _ = got.(error)
	return got, err
}
