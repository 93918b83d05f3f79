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
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/memnet"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/gomodule/redigo/redis"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type redigo = *transport.Redigo

// A broken client replaces some methods of the client in it. A nil method works normally.
type broken struct {
	redigo
	do        func(ctx context.Context, c redigo, commands ...transport.Command) ([]any, error)
	subscribe func(ctx context.Context, c redigo, channel string) (transport.Subscription, error)
	route     transport.Route
}

func (b broken) Do(ctx context.Context, key string, commands ...transport.Command) ([]any, error) {
	if b.do == nil {
		return b.redigo.Do(ctx, key, commands...)
	}
	return b.do(ctx, b.redigo, commands...)
}

func (b broken) DoRouted(ctx context.Context, key string, commands ...transport.Command) ([]any, transport.Route, error) {
	replies, err := b.Do(ctx, key, commands...)
	return replies, b.route, err
}

func (b broken) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	if b.subscribe == nil {
		return b.redigo.Subscribe(ctx, channel)
	}
	return b.subscribe(ctx, b.redigo, channel)
}

// changed is a client that changes replies and errors.
func changed(change func(replies []any, err error) ([]any, error)) broken {
	return broken{do: func(ctx context.Context, c redigo, commands ...transport.Command) ([]any, error) {
		return change(c.Do(ctx, "", commands...))
	}}
}

// eachReply is a client that changes each reply.
func eachReply(change func(reply any) any) broken {
	return changed(func(replies []any, err error) ([]any, error) {
		for i, reply := range replies {
			replies[i] = change(reply)
		}
		return replies, err
	})
}

// failing is a client with other errors.
func failing(why func(error) error) broken {
	return changed(func(replies []any, err error) ([]any, error) {
		if err != nil {
			err = why(err)
		}
		return replies, err
	})
}

// A brokenSubscription replaces some methods of the subscription in it.
type brokenSubscription struct {
	transport.Subscription
	receive func(transport.Subscription) (string, error)
}

func (b brokenSubscription) Receive() (string, error) { return b.receive(b.Subscription) }

// received is a client that changes each message.
func received(receive func(s transport.Subscription) (string, error)) broken {
	return broken{subscribe: func(ctx context.Context, c redigo, channel string) (transport.Subscription, error) {
		s, err := c.Subscribe(ctx, channel)
		return brokenSubscription{s, receive}, err
	}}
}

// noSubscription is the result of a Subscribe that does nothing.
type noSubscription struct{ transport.Subscription }

func (noSubscription) Close() error { return nil }

// These clients break the promises.
var (
	ambiguous = failing(func(err error) error { return fmt.Errorf("%w: %v", transport.ErrUnavailable, err) }) // not a timeout
	refused   = failing(func(err error) error { return fmt.Errorf("%w: %w", transport.ErrRefused, err) })

	nothingIsEmpty = eachReply(func(reply any) any {
		if reply == nil {
			return ""
		}
		return reply
	})
	ownWords = eachReply(func(reply any) any {
		if _, ok := reply.(error); ok {
			return errors.New("failed")
		}
		return reply
	})
	short1MB = eachReply(func(reply any) any {
		if b, ok := reply.([]byte); ok && len(b) > 1<<20 {
			return b[:1<<20]
		}
		return reply
	})
	oneForAll = changed(func(replies []any, err error) ([]any, error) {
		for _, r := range replies {
			if refusal, ok := r.(error); ok {
				return nil, fmt.Errorf("%w: %w", transport.ErrRefused, refusal)
			}
		}
		return replies, err
	})
	backwards = broken{do: func(ctx context.Context, c redigo, commands ...transport.Command) ([]any, error) {
		commands = slices.Clone(commands)
		slices.Reverse(commands)
		replies, err := c.Do(ctx, "", commands...)
		slices.Reverse(replies)
		return replies, err
	}}
	oneByOne = broken{do: func(ctx context.Context, c redigo, commands ...transport.Command) (all []any, _ error) {
		for _, command := range commands {
			replies, err := c.Do(ctx, "", command)
			if err != nil {
				return nil, err
			}
			all = append(all, replies...)
		}
		return all, nil
	}}
	trims = broken{do: func(ctx context.Context, c redigo, commands ...transport.Command) ([]any, error) {
		for _, command := range commands {
			for i, arg := range command {
				if text, ok := arg.(string); ok {
					command[i] = strings.TrimSpace(text)
				}
			}
		}
		return c.Do(ctx, "", commands...)
	}}
	ignoresContext = broken{do: func(ctx context.Context, c redigo, commands ...transport.Command) ([]any, error) {
		return c.Do(context.WithoutCancel(ctx), "", commands...)
	}}
	neverGivesUp = changed(func(replies []any, err error) ([]any, error) {
		if err != nil {
			time.Sleep(patience * 3 / 4) // in a bubble
		}
		return replies, err
	})
	breaksOff = broken{do: func(ctx context.Context, c redigo, commands ...transport.Command) ([]any, error) {
		defer context.AfterFunc(ctx, c.Reset)()
		return c.Do(context.WithoutCancel(ctx), "", commands...)
	}}
	repeats = broken{do: func(ctx context.Context, c redigo, commands ...transport.Command) ([]any, error) {
		replies, err := c.Do(ctx, "", commands...)
		if err != nil {
			replies, err = c.Do(ctx, "", commands...)
		}
		return replies, err
	}}
	subscribesAnyway = broken{subscribe: func(context.Context, redigo, string) (transport.Subscription, error) {
		return noSubscription{}, nil
	}}
	endsWithContext = broken{subscribe: func(ctx context.Context, c redigo, channel string) (transport.Subscription, error) {
		s, err := c.Subscribe(ctx, channel)
		context.AfterFunc(ctx, func() { s.Close() })
		return s, err
	}}
	losesMessages = received(func(s transport.Subscription) (string, error) {
		if message, err := s.Receive(); !strings.HasPrefix(message, "7") {
			return message, err
		}
		return s.Receive()
	})
	neverEnds = received(func(s transport.Subscription) (string, error) {
		message, _ := s.Receive()
		return message, nil
	})
)

// sendsLater gives up after the deadline, and sends the commands with the next round trip.
func sendsLater() broken {
	var later []transport.Command
	return broken{do: func(ctx context.Context, c redigo, commands ...transport.Command) ([]any, error) {
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

// mixesReplies returns the replies of the previous round trip.
func mixesReplies() broken {
	last := make(chan []any, 1)
	last <- []any{"", ""}
	return changed(func(replies []any, err error) ([]any, error) {
		before := <-last
		last <- replies
		return before, err
	})
}

// neverRecovers fails for ever after its first failure, or from its third round trip on.
func neverRecovers(most int) func() broken {
	return func() broken {
		var mu sync.Mutex
		var failed error
		n := 0
		return changed(func(replies []any, err error) ([]any, error) {
			mu.Lock()
			defer mu.Unlock()
			if n++; err != nil || n > most {
				failed = transport.ErrRefused
			}
			return replies, failed
		})
	}
}

// elsewhere is a client that names another server than the one it has asked.
var elsewhere = broken{route: transport.Route{Node: "elsewhere:6379"}}

// For every promise there is a client that breaks it, and the check notices.
func TestChecksCanFail(t *testing.T) {
	t.Parallel()
	always := func(all ...broken) (makers []func() broken) {
		for _, b := range all {
			makers = append(makers, func() broken { return b })
		}
		return makers
	}
	all := map[string][]func() broken{
		"Replies":                     always(nothingIsEmpty),
		"ErrorsAreReplies":            always(oneForAll, ownWords),
		"Order":                       always(backwards),
		"OneWrite":                    always(oneByOne),
		"Arguments":                   always(trims),
		"Large":                       always(short1MB),
		"ArgumentsAreTheCallers":      {sendsLater},
		"ManyCallers":                 {mixesReplies},
		"Route":                       always(elsewhere),
		"RefusedWhenDown":             always(ambiguous),
		"RefusedWhenOver":             always(ignoresContext, ambiguous),
		"LostCommand":                 always(repeats, refused),
		"LostReply":                   always(repeats, refused),
		"CutReply":                    always(repeats, refused),
		"Timeout":                     always(neverGivesUp, refused, ambiguous),
		"Deadline":                    always(ignoresContext, refused),
		"DeadlineHarmsNobody":         always(breaksOff),
		"CancelDoesNotBreakOff":       always(breaksOff),
		"Restart":                     {neverRecovers(1000)},
		"Reset":                       {neverRecovers(2)},
		"Messages":                    always(losesMessages),
		"SubscriptionCloses":          always(neverEnds),
		"SubscriptionBreaks":          always(neverEnds),
		"SubscriptionOutlastsContext": always(endsWithContext),
		"SubscribeWhenDown":           always(subscribesAnyway),
	}
	for _, p := range promises {
		if len(all[p.name]) == 0 {
			t.Errorf("nothing breaks %s", p.name)
		}
		t.Run(p.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { p.check(newCheck(t, kindOf(func() broken { return broken{} }))) })
			for i, client := range all[p.name] {
				synctest.Test(t, func(t *testing.T) {
					r := &recorder{TB: t}
					done := make(chan struct{})
					go func() {
						defer close(done)
						p.check(newCheck(r, kindOf(client)))
					}()
					if <-done; !r.failed() {
						t.Errorf("client %d: %s found nothing", i, p.name)
					}
				})
			}
		})
	}
}

// kindOf is a client of a Redis in memory.
func kindOf(client func() broken) Kind {
	return Kind{
		OneWrite: true,
		Open: func(t testing.TB, address string, timeout time.Duration) transport.Client {
			b := client()
			b.redigo = transport.NewRedigo(&redis.Pool{DialContext: func(ctx context.Context) (redis.Conn, error) {
				return redis.DialContext(ctx, "tcp", address, redis.DialContextFunc(memnet.DialContext))
			}}, timeout)
			t.Cleanup(func() { b.redigo.Close(); b.Reset() })
			return b
		},
		Start: func(t testing.TB) Server {
			s := redistest.Memory(t)
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
