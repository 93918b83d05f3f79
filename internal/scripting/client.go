package scripting

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// A Runner's client, and the hooks in it, may come from other programmers. If the client panics, the panic becomes
// the error of the round trip, and only one request fails. A panic in one of our timers, sweeps or subscriptions
// would end the process. All calls to a client are in this file.
//
// A runtime.Goexit cannot become an error: it ends the goroutine. So code that unlocks a mutex for a call locks it
// again by defer.

// do calls the client's Do. If route is not nil, and the client knows routes, it calls DoRouted and sets the route. The
// error is a deferred if no node of a cluster could take the commands.
func (r *Runner) do(ctx context.Context, slot string, commands []transport.Command, route *transport.Route) (replies []any, err error) {
	defer Recovered(&err)
	if route != nil && r.routed != nil {
		replies, *route, err = r.routed.DoRouted(ctx, slot, commands...)
	} else {
		replies, err = r.client.Do(ctx, slot, commands...)
	}
	err = WithoutArguments(err)
	switch {
	case err == nil && len(replies) != len(commands):
		return nil, fmt.Errorf("%w: its client has %d replies to %d commands", transport.ErrUnavailable, len(replies), len(commands))
	case err != nil && r.IsCluster() && ctx.Err() == nil &&
		errors.Is(err, transport.ErrRefused) && !isTimeout(err) && !errors.Is(err, transport.ErrClosed):
		return nil, deferred{err}
	}
	return replies, err
}

// stray gives up the connections, unless they were given up since resets was read. It returns the error of the
// call that has got the reply to another call.
func (r *Runner) stray(resets int64) (err error) {
	defer Recovered(&err)
	if c, ok := r.client.(transport.Resetter); ok && r.resets.CompareAndSwap(resets, resets+1) {
		c.Reset()
	}
	return fmt.Errorf("%w: %w", transport.ErrUnavailable, errStray)
}

// IsCluster reports whether Redis is a cluster, and the client knows clusters. It is false if the client panics.
func (r *Runner) IsCluster() (is bool) {
	defer func() { _ = recover() }()
	return r.cluster != nil && r.cluster.IsCluster()
}

// Subscribe calls the client's Subscribe.
func (r *Runner) Subscribe(ctx context.Context, channel string) (_ transport.Subscription, err error) {
	defer Recovered(&err)
	s, err := r.client.Subscribe(ctx, channel)
	return subscription{s}, err
}

// SubscribeShard calls SubscribeShard of a client that knows clusters.
func (r *Runner) SubscribeShard(ctx context.Context, channel string) (_ transport.Subscription, err error) {
	defer Recovered(&err)
	s, err := r.cluster.SubscribeShard(ctx, channel)
	return subscription{s}, err
}

// A subscription turns panics of the client's subscription into errors.
type subscription struct{ client transport.Subscription }

func (s subscription) Receive() (message string, err error) {
	defer Recovered(&err)
	return s.client.Receive()
}

func (s subscription) Close() (err error) {
	defer Recovered(&err)
	return s.client.Close()
}

// panicked is the error of a call that has panicked.
type panicked struct{ error }

func (p panicked) Unwrap() error { return p.error }

// Recovered turns a panic into the error of a call that may have been done. Call it by defer.
func Recovered(err *error) {
	if v := recover(); v != nil {
		*err = Panicked(v)
	}
}

// Panicked returns the error of a panic with v, for the function that has recovered it.
func Panicked(v any) error {
	return panicked{fmt.Errorf("%w: %s", transport.ErrUnavailable, Panic(v))}
}

// Panic returns a text with v, and the place of the panic with v, for the function that has recovered it.
func Panic(v any) string {
	pc := make([]uintptr, 32)
	frames := runtime.CallersFrames(pc[:runtime.Callers(1, pc)])
	place, panics := "an unknown place", false
	for frame, more := frames.Next(); more; frame, more = frames.Next() {
		if panics && !strings.HasPrefix(frame.Function, "runtime.") {
			place = frame.Function + ":" + strconv.Itoa(frame.Line)
			break
		}
		panics = panics || frame.Function == "runtime.gopanic"
	}
	return fmt.Sprintf("a panic in %s: %v", place, v)
}

// Ping asks whether Redis replies. The keys are in different slots. If Redis is a node of a cluster, and the
// client does not know clusters, Ping fails: such a node serves only some of the keys. If the client knows
// clusters, it is enough that the node of one key replies, since a cluster works without some of its nodes.
func (r *Runner) Ping(ctx context.Context, keys ...string) error {
	if r.cluster != nil && len(keys) > 0 {
		return r.pingAny(ctx, keys)
	}
	if err := r.ping(ctx, ""); err != nil {
		return err
	}
	moved := make([]error, len(keys))
	var all sync.WaitGroup
	for i, key := range keys {
		all.Go(func() {
			replies, err := r.send(ctx, key, purpose{}, []transport.Command{{"GET", key}})
			if err == nil {
				if refusal, ok := replies[0].(error); ok && strings.HasPrefix(refusal.Error(), moving) {
					moved[i] = Refused(refusal)
				}
			}
		})
	}
	all.Wait()
	return cmp.Or(moved...)
}

// pingAny returns when the first node has replied.
func (r *Runner) pingAny(ctx context.Context, keys []string) error {
	if !r.IsCluster() { // or the client does not know it yet
		if err := r.ping(ctx, keys[0]); err == nil || !r.IsCluster() {
			return err
		}
	}
	outcomes := make(chan error, len(keys))
	for _, key := range keys {
		go func() { // ends by the timeout of the client
			err := ErrExited
			defer func() { outcomes <- err }()
			err = r.ping(ctx, key)
		}()
	}
	var err error
	for range keys {
		err = <-outcomes
		if err == nil {
			return nil
		}
	}
	return err
}

// ping asks once more if the connection broke, since the server may have closed an idle connection.
func (r *Runner) ping(ctx context.Context, key string) error {
	commands := []transport.Command{{"PING"}}
	replies, err := r.send(ctx, key, purpose{}, commands)
	if Broken(err) {
		replies, err = r.send(ctx, key, purpose{}, commands)
	}
	if err != nil {
		return err
	}
	if refusal, ok := replies[0].(error); ok {
		return Refused(refusal)
	}
	return nil
}
