package clienttest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/a2139e8d/latchkey/testdata/redistest"
	"github.com/gomodule/redigo/redis"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	patience = 5 * time.Second // what is broken does not get better by waiting
	goleak.VerifyTestMain(m)
}

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

// Every promise is broken by some client, and each check finds that out.
func TestChecksCanFail(t *testing.T) {
	t.Parallel()
	all := map[string][]func() broken{
		"Replies": {
			changed(func(replies []any, err error) ([]any, error) { // nothing becomes an empty string
				return slices.Collect(func(yield func(any) bool) {
					for _, r := range replies {
						if r == nil {
							r = ""
						}
						yield(r)
					}
				}), err
			}),
		},
		"ErrorsAreReplies": {
			changed(func(replies []any, err error) ([]any, error) { // the first refusal is that of all
				for _, r := range replies {
					if refusal, ok := r.(error); ok {
						return nil, fmt.Errorf("%w: %w", transport.ErrRefused, refusal)
					}
				}
				return replies, err
			}),
			changed(func(replies []any, err error) ([]any, error) { // not in Redis's words
				for i, r := range replies {
					if _, ok := r.(error); ok {
						replies[i] = errors.New("failed")
					}
				}
				return replies, err
			}),
		},
		"Order": {doing(func(ctx context.Context, c *transport.Redigo, commands []transport.Command) ([]any, error) {
			commands = slices.Clone(commands)
			slices.Reverse(commands)
			replies, err := c.Do(ctx, "", commands...)
			slices.Reverse(replies)
			return replies, err
		})},
		"OneWrite": {doing(func(ctx context.Context, c *transport.Redigo, commands []transport.Command) (all []any, _ error) {
			for _, command := range commands {
				replies, err := c.Do(ctx, "", command)
				if err != nil {
					return nil, err
				}
				all = append(all, replies...)
			}
			return all, nil
		})},
		"Arguments": {doing(func(ctx context.Context, c *transport.Redigo, commands []transport.Command) ([]any, error) {
			for _, command := range commands {
				for i, arg := range command {
					if text, ok := arg.(string); ok {
						command[i] = strings.TrimSpace(text)
					}
				}
			}
			return c.Do(ctx, "", commands...)
		})},
		"Large": {changed(func(replies []any, err error) ([]any, error) {
			for i, r := range replies {
				if b, ok := r.([]byte); ok && len(b) > 1<<20 {
					replies[i] = b[:1<<20]
				}
			}
			return replies, err
		})},
		"ArgumentsAreTheCallers":      {sendsLater},
		"ManyCallers":                 {mixesReplies},
		"RefusedWhenDown":             {changed(alwaysAmbiguous)},
		"RefusedWhenOver":             {doing(ignoresContext), changed(alwaysAmbiguous)},
		"LostCommand":                 {repeats, changed(alwaysRefused)},
		"LostReply":                   {repeats, changed(alwaysRefused)},
		"CutReply":                    {repeats, changed(alwaysRefused)},
		"Timeout":                     {doing(neverGivesUp), changed(alwaysRefused), changed(noTimeout)},
		"Deadline":                    {doing(ignoresContext), changed(alwaysRefused)},
		"DeadlineHarmsNobody":         {doing(breaksOff)},
		"CancelDoesNotBreakOff":       {doing(breaksOff)},
		"Restart":                     {neverRecovers},
		"Reset":                       {resetCloses},
		"Messages":                    {losesMessages, listensToAll},
		"SubscriptionCloses":          {closesNever},
		"SubscriptionBreaks":          {closesNever},
		"SubscriptionOutlastsContext": {endsWithContext},
		"SubscribeWhenDown":           {subscribesAnyway},
	}
	for _, p := range promises {
		if len(all[p.name]) == 0 {
			t.Errorf("nothing breaks %s", p.name)
		}
		for i, client := range all[p.name] {
			t.Run(fmt.Sprint(p.name, i), func(t *testing.T) {
				t.Parallel()
				r := &recorder{TB: t}
				done := make(chan struct{})
				go func() {
					defer close(done)
					p.check(newCheck(r, kindOf(client)))
				}()
				<-done
				if !r.failed() {
					t.Errorf("%s found nothing", p.name)
				}
			})
		}
	}
}

func kindOf(client func() broken) Kind {
	return Kind{
		OneWrite: true,
		Open: func(t testing.TB, address string, timeout time.Duration) transport.Client {
			b := client()
			b.Redigo = transport.NewRedigo(&redis.Pool{
				Dial: func() (redis.Conn, error) { return redis.Dial("tcp", address) },
			}, timeout)
			t.Cleanup(func() { b.Redigo.Close(); b.Redigo.Reset() })
			return b
		},
		Start: func(t testing.TB) Server {
			s := redistest.Real(t)
			return Server{
				Address: s.Addr,
				Stop:    func() { s.Stop(t) },
				Restart: func() { s.Restart(t) },
				Pause:   func() { s.Pause(t) },
				Resume:  func() { s.Resume(t) },
			}
		},
	}
}

// A recorder notes that a check has failed.
type recorder struct {
	testing.TB
	mu  sync.Mutex
	has bool
}

func (r *recorder) failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.has
}

func (r *recorder) Error(args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.has = true
	r.Log(args...)
}
func (r *recorder) Errorf(format string, args ...any) { r.Error(fmt.Sprintf(format, args...)) }
func (r *recorder) Fatal(args ...any)                 { r.Error(args...); runtime.Goexit() }
func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }

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

// A subscription that is broken.
type brokenSubscription struct {
	transport.Subscription
	receive func() (string, error)
	close   func() error
}

func (b brokenSubscription) Receive() (string, error) { return b.receive() }
func (b brokenSubscription) Close() error             { return b.close() }

func subscribing(change func(ctx context.Context, s *brokenSubscription)) broken {
	return broken{subscribe: func(ctx context.Context, c *transport.Redigo, channel string) (transport.Subscription, error) {
		s, err := c.Subscribe(ctx, channel)
		if err != nil {
			return nil, err
		}
		b := &brokenSubscription{s, s.Receive, s.Close}
		change(ctx, b)
		return b, nil
	}}
}

func losesMessages() broken {
	return subscribing(func(_ context.Context, s *brokenSubscription) {
		s.receive = func() (string, error) {
			if message, err := s.Subscription.Receive(); !strings.HasPrefix(message, "7") {
				return message, err
			}
			return s.Subscription.Receive()
		}
	})
}

func listensToAll() broken {
	return broken{subscribe: func(ctx context.Context, c *transport.Redigo, _ string) (transport.Subscription, error) {
		return c.Subscribe(ctx, "another")
	}}
}

// closesNever waits for ever, whatever happens, or for as long as a test may.
func closesNever() broken {
	return subscribing(func(_ context.Context, s *brokenSubscription) {
		s.receive = func() (string, error) {
			message, err := s.Subscription.Receive()
			time.Sleep(patience + time.Second)
			return message, err
		}
	})
}

func endsWithContext() broken {
	return subscribing(func(ctx context.Context, s *brokenSubscription) {
		context.AfterFunc(ctx, func() { s.Subscription.Close() })
	})
}

func subscribesAnyway() broken {
	return broken{subscribe: func(ctx context.Context, c *transport.Redigo, channel string) (transport.Subscription, error) {
		return brokenSubscription{nil, nil, func() error { return nil }}, nil
	}}
}
