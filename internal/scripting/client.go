package scripting

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// A Runner's client is anybody's, and so are the hooks in it. If it panics, that is the error of
// the exchange: it costs the request, and in a timer, a sweep or a subscription of ours it does not
// end the process. All calls of a client are in this file.
//
// A runtime.Goexit cannot become an error. It ends the goroutine, so whoever gives up a mutex for a
// call takes it again by defer.

// do is Do, whose error is a later where no node of a cluster was there to take the commands.
func (r *Runner) do(ctx context.Context, slot string, commands []transport.Command) (replies []any, err error) {
	defer Recovered(&err)
	replies, err = r.client.Do(ctx, slot, commands...)
	switch {
	case err == nil && len(replies) != len(commands):
		return nil, fmt.Errorf("%w: its client has %d replies to %d commands", transport.ErrUnavailable, len(replies), len(commands))
	case err != nil && r.IsCluster() && ctx.Err() == nil &&
		errors.Is(err, transport.ErrRefused) && !isTimeout(err) && !errors.Is(err, transport.ErrClosed):
		return nil, later{err}
	}
	return replies, err
}

// stray gives the connections up, unless that has happened since resets was read, and returns the
// error of the call that has got another's reply.
func (r *Runner) stray(resets int64) (err error) {
	defer Recovered(&err)
	if c, ok := r.client.(transport.Resetter); ok && r.resets.CompareAndSwap(resets, resets+1) {
		c.Reset()
	}
	return fmt.Errorf("%w: %w", transport.ErrUnavailable, errStray)
}

// IsCluster reports whether Redis is a cluster, and the client knows clusters.
func (r *Runner) IsCluster() bool { return r.cluster != nil && r.cluster.IsCluster() }

// Subscribe is that of the client.
func (r *Runner) Subscribe(ctx context.Context, channel string) (_ transport.Subscription, err error) {
	defer Recovered(&err)
	s, err := r.client.Subscribe(ctx, channel)
	return subscription{s}, err
}

// SubscribeShard is that of a client that knows clusters.
func (r *Runner) SubscribeShard(ctx context.Context, channel string) (_ transport.Subscription, err error) {
	defer Recovered(&err)
	s, err := r.cluster.SubscribeShard(ctx, channel)
	return subscription{s}, err
}

// A subscription is that of the client.
type subscription struct{ client transport.Subscription }

func (s subscription) Receive() (message string, err error) {
	defer Recovered(&err)
	return s.client.Receive()
}

func (s subscription) Close() (err error) {
	defer Recovered(&err)
	return s.client.Close()
}

// A panicked is the error of a call that has panicked.
type panicked struct{ error }

func (p panicked) Unwrap() error { return p.error }

// Recovered is to be deferred. It makes a panic the error of a call whose outcome is unknown.
func Recovered(err *error) {
	if v := recover(); v != nil {
		*err = Panicked(v)
	}
}

// Panicked returns the error of a panic with v, for the function that has recovered it.
func Panicked(v any) error {
	return panicked{fmt.Errorf("%w: %s", transport.ErrUnavailable, Panic(v))}
}

// Panic says where the panic with v was, and v itself, for the function that has recovered it.
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
