package rueidisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/redis/rueidis"
)

// A client is a [transport.ClusterClient] over rueidis.
//
// Rueidis ignores the deadline of a context while another caller dials, or while the queue of a connection is
// full. So if that is possible, or if the caller has less time than the others on a connection, a goroutine
// waits for rueidis, and the caller waits for the goroutine. Commands that a caller has given up may still be
// sent, so all arguments are copied.
type client struct {
	timeout time.Duration
	maker   maker
	links   links
	shared  sharedDeadline
	health  health
	left    atomic.Int64 // when a server was last left, in Unix nanoseconds
}

var _ transport.RoutedClient = (*client)(nil)

// DoRouted is described in [transport.RoutedClient]. On a cluster and behind Sentinel rueidis does not tell which node it asks.
func (c *client) DoRouted(ctx context.Context, key string, commands ...transport.Command) (replies []any, route transport.Route, err error) {
	replies, err = c.Do(ctx, key, commands...)
	if made := c.maker.made.Load(); made != nil && (*made).Mode() == rueidis.ClientModeStandalone {
		route.Node = c.maker.option.InitAddress[0]
	}
	route.Database = strconv.Itoa(c.maker.option.SelectDB) // on a cluster it is 0
	return replies, route, err
}

// Do is described in [transport.Client].
func (c *client) Do(ctx context.Context, key string, commands ...transport.Command) ([]any, error) {
	if err := ctx.Err(); err != nil || len(commands) == 0 {
		return nil, unsent(err)
	}
	now := time.Now()
	end, hurried := now.Add(c.timeout), false
	if sooner, ok := ctx.Deadline(); ok && sooner.Before(end) {
		if end, hurried = sooner, true; !now.Before(end) { // its timer is late
			return nil, unsent(context.DeadlineExceeded)
		}
	}
	redis, err := c.maker.client(ctx, end)
	if err != nil {
		return nil, unsent(err)
	}
	x := exchange{redis: redis, commands: build(redis, key, commands)}
	if good := c.health.good(now); good && !hurried {
		return c.send(x, now)
	}
	return c.guarded(x, now, end)
}

// guarded sends x in a goroutine, which ends by the timeout, or soon after if rueidis is late. A caller with
// less time returns earlier, and breaks no connection that others use.
func (c *client) guarded(x exchange, now, end time.Time) ([]any, error) {
	type outcome struct {
		replies  []any
		err      error
		panicked any
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			o.panicked = recover()
			done <- o
		}()
		o.replies, o.err = c.send(x, now)
	}()
	timer := time.NewTimer(time.Until(end))
	defer timer.Stop()
	select {
	case o := <-done:
		if o.panicked != nil { // as it would have without the goroutine
			panic(o.panicked)
		}
		return o.replies, o.err
	case <-timer.C:
		return nil, fmt.Errorf("%w: no reply: %w", transport.ErrUnavailable, context.DeadlineExceeded)
	}
}

// send sends x, and notes the outcome.
func (c *client) send(x exchange, now time.Time) (replies []any, err error) {
	defer func() { c.health.judge(err) }()
	replies, err = x.send(c.shared.until(now, c.timeout))
	demoted := slices.ContainsFunc(replies, isReadOnly)
	if mode := x.redis.Mode(); mode != rueidis.ClientModeCluster && (demoted || err != nil && mode == rueidis.ClientModeSentinel) {
		c.leave(x.redis, demoted, time.Now())
	}
	return replies, err
}

// leave leaves a server that is not the master any more, or perhaps is not. The server's address may lead to another
// server by now, which rueidis would not notice: so its connections are broken. Sentinels are asked by a new client of
// rueidis, since the present one may have missed what they have told; and while there is no master, it starts ever more
// goroutines. On a cluster rueidis does all that by itself. A server is not left more often than callers that come
// meanwhile can wait for.
func (c *client) leave(redis rueidis.Client, demoted bool, now time.Time) {
	last := c.left.Load()
	if !c.maker.has(redis) || now.UnixNano()-last <= int64(c.timeout/8) || !c.left.CompareAndSwap(last, now.UnixNano()) {
		return
	}
	if redis.Mode() == rueidis.ClientModeSentinel {
		c.maker.drop(redis)
	}
	if demoted {
		c.links.reset()
	}
}

func isReadOnly(reply any) bool {
	refusal, ok := reply.(error)
	return ok && strings.HasPrefix(refusal.Error(), "READONLY ")
}

// An exchange is the round trip of one Do.
type exchange struct {
	redis    rueidis.Client
	commands []rueidis.Completed
}

// build makes commands that share no memory with the caller's. On a cluster all of them go to the node of
// key, even those without a key.
func build(redis rueidis.Client, key string, commands []transport.Command) []rueidis.Completed {
	routed := key != "" && redis.Mode() == rueidis.ClientModeCluster
	all := make([]rueidis.Completed, len(commands))
	for i, command := range commands {
		c := redis.B().Arbitrary(command[0].(string))
		for _, arg := range command[1:] {
			c = c.Args(text(arg))
		}
		if all[i] = c.Build(); routed {
			all[i] = all[i].SetSlot(key)
		}
	}
	return all
}

func text(arg any) string {
	switch arg := arg.(type) {
	case string:
		return arg
	case []byte:
		return string(arg)
	case int:
		return strconv.Itoa(arg)
	case int64:
		return strconv.FormatInt(arg, 10)
	}
	return fmt.Sprint(arg)
}

// send returns when there are replies, or about when ctx ends.
func (x exchange) send(ctx context.Context) ([]any, error) {
	if len(x.commands) == 1 {
		reply, err := received(x.redis.Do(ctx, x.commands[0]))
		if err != nil {
			return nil, failed(ctx, err)
		}
		return []any{reply}, nil
	}
	replies := make([]any, len(x.commands))
	var failure error // of the commands without a reply, of one that may have been sent
	missing := 0
	for i, result := range x.redis.DoMulti(ctx, x.commands...) {
		var err error
		if replies[i], err = received(result); err != nil {
			if missing++; failure == nil || isUnsent(failure) {
				failure = err
			}
		}
	}
	switch {
	case missing == 0:
		return replies, nil
	case missing < len(replies): // the others were sent
		return nil, lost(ctx, failure)
	}
	return nil, failed(ctx, failure)
}

// received returns a reply. If Redis has refused the command, the reply is an error.
func received(result rueidis.RedisResult) (any, error) {
	if err := result.NonRedisError(); err != nil {
		return nil, err
	}
	message, err := result.ToMessage()
	return value(message, err), nil
}

// value converts a reply. Text is a []byte, since it may be large, and is not copied.
func value(m rueidis.RedisMessage, err error) any {
	switch {
	case rueidis.IsRedisNil(err):
		return nil
	case err != nil:
		return err
	case m.IsInt64():
		n, _ := m.ToInt64()
		return n
	case m.IsArray():
		parts, _ := m.ToArray()
		values := make([]any, len(parts))
		for i := range parts {
			values[i] = value(parts[i], parts[i].Error())
		}
		return values
	}
	b, err := m.AsBytes()
	if err != nil { // not text: Redis sends no such reply to the commands of this module
		return err
	}
	return b
}

// failed returns the error of a round trip without replies.
func failed(ctx context.Context, err error) error {
	if isUnsent(err) {
		return unsent(err)
	}
	return lost(ctx, err)
}

// lost returns the error of commands that may have been executed.
func lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: no reply: %w", transport.ErrUnavailable, ctx.Err())
	}
	return &transport.BrokenError{Cause: err}
}

// isUnsent reports whether err says that a connection could not be made.
func isUnsent(err error) bool {
	if _, ok := errors.AsType[dialError](err); ok {
		return true
	}
	_, ok := errors.AsType[*rueidis.RedisError](err) // refused at the login
	return ok || errors.Is(err, rueidis.ErrNoSlot)
}

// unsent returns the error of commands that were not sent because of err, if any.
func unsent(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: no connection: %w", transport.ErrRefused, err)
}

// IsCluster is described in [transport.ClusterClient].
func (c *client) IsCluster() bool {
	redis := c.maker.made.Load()
	return redis != nil && (*redis).Mode() == rueidis.ClientModeCluster
}

// Reset is described in [transport.Resetter].
func (c *client) Reset() { c.links.reset() }
