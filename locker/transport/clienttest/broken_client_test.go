package clienttest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// A broken client does something else than the one in it. What is nil works.
type broken struct {
	*transport.Redigo
	do        func(ctx context.Context, c *transport.Redigo, commands []transport.Command) ([]any, error)
	subscribe func(ctx context.Context, c *transport.Redigo, channel string) (transport.Subscription, error)
}

func (b broken) Do(ctx context.Context, key string, commands ...transport.Command) ([]any, error) {
	if b.do == nil {
		return b.Redigo.Do(ctx, key, commands...)
	}
	return b.do(ctx, b.Redigo, commands)
}

func (b broken) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	if b.subscribe == nil {
		return b.Redigo.Subscribe(ctx, channel)
	}
	return b.subscribe(ctx, b.Redigo, channel)
}

// changed returns a do that changes replies and errors.
func changed(change func(replies []any, err error) ([]any, error)) func() broken {
	return func() broken {
		return broken{do: func(ctx context.Context, c *transport.Redigo, commands []transport.Command) ([]any, error) {
			return change(c.Do(ctx, "", commands...))
		}}
	}
}

// doing returns a client with that do.
func doing(do func(ctx context.Context, c *transport.Redigo, commands []transport.Command) ([]any, error)) func() broken {
	return func() broken { return broken{do: do} }
}

func alwaysAmbiguous(replies []any, err error) ([]any, error) {
	if err != nil {
		err = fmt.Errorf("%w: %v", transport.ErrUnavailable, err)
	}
	return replies, err
}

func alwaysRefused(replies []any, err error) ([]any, error) {
	if err != nil {
		err = fmt.Errorf("%w: %w", transport.ErrRefused, err)
	}
	return replies, err
}

func noTimeout(replies []any, err error) ([]any, error) {
	if err != nil {
		err = fmt.Errorf("%w: %v", transport.ErrUnavailable, err)
	}
	return replies, err
}

func ignoresContext(ctx context.Context, c *transport.Redigo, commands []transport.Command) ([]any, error) {
	return c.Do(context.WithoutCancel(ctx), "", commands...)
}

func neverGivesUp(ctx context.Context, c *transport.Redigo, commands []transport.Command) ([]any, error) {
	replies, err := c.Do(ctx, "", commands...)
	if err != nil {
		time.Sleep(5 * short)
	}
	return replies, err
}

// breaksOff ends everything when a caller leaves.
func breaksOff(ctx context.Context, c *transport.Redigo, commands []transport.Command) ([]any, error) {
	defer context.AfterFunc(ctx, c.Reset)()
	return c.Do(context.WithoutCancel(ctx), "", commands...)
}

// repeats tries again, so that a command may be executed twice, and lost ones seem not to be.
func repeats() broken {
	return broken{do: func(ctx context.Context, c *transport.Redigo, commands []transport.Command) ([]any, error) {
		replies, err := c.Do(ctx, "", commands...)
		if err != nil {
			replies, err = c.Do(ctx, "", commands...)
		}
		return replies, err
	}}
}

// sendsLater gives up when the deadline is over, and sends what it was given with the next exchange.
func sendsLater() broken {
	var later []transport.Command
	return broken{do: func(ctx context.Context, c *transport.Redigo, commands []transport.Command) ([]any, error) {
		if _, hurried := ctx.Deadline(); hurried {
			<-ctx.Done()
			later = commands
			return nil, fmt.Errorf("%w: %w", transport.ErrUnavailable, ctx.Err())
		}
		if later != nil {
			if _, err := c.Do(ctx, "", later...); err != nil {
				return nil, err
			}
		}
		return c.Do(ctx, "", commands...)
	}}
}

// mixesReplies returns what the exchange before has got.
func mixesReplies() broken {
	last := make(chan []any, 1)
	last <- []any{"", ""}
	return broken{do: func(ctx context.Context, c *transport.Redigo, commands []transport.Command) ([]any, error) {
		replies, err := c.Do(ctx, "", commands...)
		before := <-last
		last <- replies
		return before, err
	}}
}

// neverRecovers fails for ever when it has failed once.
func neverRecovers() broken {
	var mu sync.Mutex
	var failed error
	return broken{do: func(ctx context.Context, c *transport.Redigo, commands []transport.Command) ([]any, error) {
		mu.Lock()
		defer mu.Unlock()
		if failed != nil {
			return nil, failed
		}
		replies, err := c.Do(ctx, "", commands...)
		failed = err
		return replies, err
	}}
}

// resetCloses fails from the second exchange on, as if Reset had closed it.
func resetCloses() broken {
	pings := 0
	return broken{do: func(ctx context.Context, c *transport.Redigo, commands []transport.Command) ([]any, error) {
		if pings++; pings > 1 {
			return nil, transport.ErrRefused
		}
		return c.Do(ctx, "", commands...)
	}}
}
