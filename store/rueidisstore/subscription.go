package rueidisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/redis/rueidis"
)

// Subscribe is described in [transport.Client].
func (c *client) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	return c.subscribe(ctx, func(b rueidis.Builder) rueidis.Completed { return b.Subscribe().Channel(channel).Build() })
}

// SubscribeShard is described in [transport.ClusterClient].
func (c *client) SubscribeShard(ctx context.Context, channel string) (transport.Subscription, error) {
	return c.subscribe(ctx, func(b rueidis.Builder) rueidis.Completed { return b.Ssubscribe().Channel(channel).Build() })
}

// A subscription has a connection of its own, and ends with it. On the connection of the commands it would need
// UNSUBSCRIBE. Rueidis sends a PING behind UNSUBSCRIBE. If Redis refuses one of the two, as in the states BUSY, MISCONF and
// MASTERDOWN, rueidis mistakes the replies, and ends the process.
//
// The reader of a connection must not wait, so messages that are not received yet are kept here.
type subscription struct {
	command func(rueidis.Builder) rueidis.Completed // that subscribes
	cancel  context.CancelFunc
	begun   chan struct{} // closed when Redis has confirmed the subscription
	over    chan struct{} // closed when its goroutine ends

	mu      sync.Mutex    // guards the fields below
	signal  chan struct{} // buffered, for one signal: there is something to receive
	unread  []string
	started bool
	err     error
}

var errUnread = errors.New("too many messages that are not received")

const maxUnread = 10_000

func (c *client) subscribe(ctx context.Context, command func(rueidis.Builder) rueidis.Completed) (transport.Subscription, error) {
	ctx, stop := context.WithTimeout(ctx, c.timeout)
	defer stop()
	end, _ := ctx.Deadline()
	redis, err := c.maker.client(ctx, end)
	if err != nil {
		return nil, unsent(err)
	}
	s := &subscription{command: command, begun: make(chan struct{}), over: make(chan struct{}), signal: make(chan struct{}, 1)}
	var living context.Context
	living, s.cancel = context.WithCancel(context.Background())
	go s.listen(living, redis)
	select {
	case <-s.begun:
		return s, nil
	case <-s.over:
		err = s.err
	case <-ctx.Done():
		_ = s.Close()
		err = ctx.Err()
	}
	return nil, fmt.Errorf("%w: subscribing: %w", transport.ErrUnavailable, err)
}

// listen is the goroutine of a subscription. It runs until ctx ends, or Redis or the connection ends the subscription.
func (s *subscription) listen(ctx context.Context, redis rueidis.Client) {
	defer s.cancel()
	defer close(s.over)
	ctx = rueidis.WithOnSubscriptionHook(ctx, s.confirm)
	for {
		err := s.receive(ctx, redis)
		if !s.again(err) {
			s.fail(err)
			return
		}
		select { // until rueidis knows the new slots
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// receive dials a connection, and listens on it until ctx ends, or Redis or the connection ends the subscription.
func (s *subscription) receive(ctx context.Context, redis rueidis.Client) error {
	own, _ := redis.Dedicate()
	defer own.Close()
	return own.Receive(ctx, s.command(own.B()), s.deliver)
}

// confirm and deliver are called by rueidis, from the goroutine that reads all replies.
func (s *subscription) confirm(event rueidis.PubSubSubscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started && !strings.Contains(event.Kind, "unsub") {
		s.started = true
		close(s.begun)
	}
}

func (s *subscription) deliver(m rueidis.PubSubMessage) {
	s.mu.Lock()
	full := len(s.unread) >= maxUnread
	if !full && s.err == nil {
		s.unread = append(s.unread, m.Message)
		s.wake()
	}
	s.mu.Unlock()
	if full {
		s.fail(errUnread)
		s.cancel()
	}
}

// wake must be called with mu held.
func (s *subscription) wake() {
	select {
	case s.signal <- struct{}{}:
	default:
	}
}

// again reports whether err is from a node without the slot: the right node will be known soon.
func (s *subscription) again(err error) bool {
	refused, ok := rueidis.IsRedisErr(err)
	if !ok {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, moved := refused.IsMoved()
	return moved && !s.started && s.err == nil
}

// fail ends s because of err, unless it has ended before.
func (s *subscription) fail(err error) {
	if err == nil {
		err = transport.ErrMoved // Redis has ended it
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = fmt.Errorf("%w: %w", transport.ErrUnavailable, err)
	}
	s.wake()
}

// Receive returns the messages that came before s failed, and then the reason of the failure.
func (s *subscription) Receive() (string, error) {
	for {
		s.mu.Lock()
		if len(s.unread) > 0 {
			message := s.unread[0]
			s.unread = s.unread[1:]
			s.mu.Unlock()
			return message, nil
		}
		err := s.err
		s.mu.Unlock()
		if err != nil {
			s.mu.Lock()
			s.wake() // for the next call
			s.mu.Unlock()
			return "", err
		}
		<-s.signal
	}
}

// Close ends s at once. Its connection is closed soon.
func (s *subscription) Close() error {
	s.fail(transport.ErrClosed)
	s.mu.Lock()
	s.unread = nil
	s.mu.Unlock()
	s.cancel()
	return nil
}
