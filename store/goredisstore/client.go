package goredisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/redis/go-redis/v9"
)

// A client is a [transport.Client] on one server, or on the master that Sentinel names.
type client struct {
	redis   *redis.Client
	timeout time.Duration // of a round trip
}

var _ transport.RoutedClient = (*client)(nil)

// DoRouted is described in [transport.RoutedClient].
func (c *client) DoRouted(ctx context.Context, key string, commands ...transport.Command) ([]any, transport.Route, error) {
	replies, err := c.Do(ctx, key, commands...)
	o := c.redis.Options()
	route := transport.Route{Node: o.Addr, Database: strconv.Itoa(o.DB)}
	if o.Addr == "FailoverClient" { // with Sentinel go-redis does not tell the master's address
		route.Node = ""
	}
	return replies, route, err
}

// Do is described in [transport.Client].
func (c *client) Do(ctx context.Context, key string, commands ...transport.Command) ([]any, error) {
	ctx, cancel, err := bounded(ctx, c.timeout)
	if err != nil {
		return nil, err
	}
	defer cancel()
	replies, err := exchange(ctx, c.redis, commands)
	if key != "" && len(replies) > 1 && !isReadOnly(replies[0]) && slices.ContainsFunc(replies, isReadOnly) {
		// The server is not a master any more, and its address may lead to another server by now. Go-redis
		// closes a connection to it only if the first command of a round trip is refused. This command would
		// change nothing.
		_, _ = exchange(ctx, c.redis, []transport.Command{{"PEXPIRE", key, 0, "GT"}})
	}
	return replies, err
}

func isReadOnly(reply any) bool {
	refusal, ok := reply.(error)
	return ok && redis.IsReadOnlyError(refusal)
}

// Subscribe is described in [transport.Client].
func (c *client) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return subscribe(ctx, c.redis, (*redis.PubSub).Subscribe, channel)
}

// bounded returns the context of a round trip. It ends by the timeout and by ctx's deadline, but not if ctx
// is cancelled, which would abort a round trip whose commands were sent.
func bounded(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, refused(err)
	}
	end := time.Now().Add(timeout)
	if sooner, ok := ctx.Deadline(); ok && sooner.Before(end) {
		end = sooner
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), end)
	return ctx, cancel, nil
}

// once keeps go-redis from sending a pipeline again if the connection breaks, or Redis says that it is busy:
// the first pipeline may have been executed, and the caller would not know.
type once struct{ *redis.Cmd }

// NoRetry is called by go-redis.
func (once) NoRetry() bool { return true }

// exchange sends the commands to one server, in one write, and returns their replies. No other round trip has
// the connection meanwhile. If there are more replies than commands, so that the next reply would belong to
// another call, go-redis closes the connection. So there is no Reset.
func exchange(ctx context.Context, server *redis.Client, commands []transport.Command) ([]any, error) {
	pipeline := server.Pipeline()
	for _, command := range commands {
		_ = pipeline.Process(ctx, once{redis.NewCmd(ctx, command...)}) // only queues the command
	}
	cmds, why := pipeline.Exec(ctx)
	replies, missing := make([]any, len(cmds)), 0
	for i, cmd := range cmds {
		reply, err := cmd.(once).Result()
		refusal, isRefusal := errors.AsType[redis.Error](err)
		switch {
		case err == nil && reply == nil: // there is no reply; why says the reason
			missing++
		case err == nil:
			replies[i] = reply
		case errors.Is(err, redis.Nil):
		case isRefusal:
			replies[i] = refusal
		default:
			return nil, failed(err)
		}
	}
	switch {
	case missing == 0: // even if a hook has failed afterwards
		return replies, nil
	case missing == len(cmds): // no command has failed: a hook has, or Redis has refused the greeting or the password
		return nil, refused(cmp.Or(why, errSkipped))
	}
	return nil, failed(cmp.Or(why, errSkipped))
}

var errSkipped = errors.New("a hook has not sent all commands")

// failed returns the error of a round trip without replies. Without a connection nothing was sent.
func failed(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return refused(err)
	}
	if errors.Is(err, redis.ErrClosed) {
		return refused(fmt.Errorf("%w: %w", transport.ErrClosed, err))
	}
	if errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) {
		return refused(err)
	}
	late, isLate := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded): // with a connection, the error is another one
		err = fmt.Errorf("no connection in time: %w", err)
	case isLate && late.Timeout():
		err = fmt.Errorf("no reply: %w", err)
	}
	return fmt.Errorf("%w: %w", transport.ErrUnavailable, err)
}

// refused returns the error of a round trip of which nothing was sent.
func refused(err error) error { return fmt.Errorf("%w: no connection: %w", transport.ErrRefused, err) }
