package scripting

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// A broken client panics in every call.
type broken struct{}

func (broken) Do(context.Context, string, ...transport.Command) ([]any, error) { panic("a bug") }
func (broken) Reset()                                                          { panic("a bug") }
func (broken) IsCluster() bool                                                 { panic("a bug") }
func (broken) Receive() (string, error)                                        { panic("a bug") }
func (broken) Close() error                                                    { panic("a bug") }

func (broken) Subscribe(_ context.Context, channel string) (transport.Subscription, error) {
	if channel == "later" {
		return broken{}, nil
	}
	panic("a bug")
}

func (b broken) SubscribeShard(ctx context.Context, channel string) (transport.Subscription, error) {
	return b.Subscribe(ctx, channel)
}

// A panic of the client becomes the error of the call. The error says where the panic was and with which value,
// and leaves open whether the command was done.
func TestAClientThatPanics(t *testing.T) {
	t.Parallel()
	r := NewRunner(broken{}, time.Minute)
	command := transport.Command{"GET", "k"}
	for name, do := range map[string]func() error{
		"Run":            func() error { _, err := r.Run(t.Context(), echo, Keys{"k"}, "word"); return err },
		"Plain":          func() error { _, err := r.RoundTripPlain(t.Context(), "k", command); return err },
		"Numbered":       func() error { _, err := r.RoundTripNumbered(t.Context(), "k", command); return err },
		"Ping":           func() error { return r.Ping(t.Context()) },
		"Ping any":       func() error { return r.Ping(t.Context(), "a", "b") },
		"Reset":          func() error { return r.stray(r.resets.Load()) },
		"Subscribe":      func() error { _, err := r.Subscribe(t.Context(), "c"); return err },
		"SubscribeShard": func() error { _, err := r.SubscribeShard(t.Context(), "c"); return err },
		"Receive": func() error {
			s, _ := r.Subscribe(t.Context(), "later")
			_, err := s.Receive()
			return err
		},
		"Close": func() error {
			s, _ := r.SubscribeShard(t.Context(), "later")
			return s.Close()
		},
	} {
		err := do()
		if !MaybeDone(err) || Broken(err) || !strings.Contains(err.Error(), "a panic in github.com/a2139e8d/latchkey/internal/scripting.broken.") ||
			!strings.Contains(err.Error(), ": a bug") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A call that has panicked is not repeated: the network is not at fault, and the panic must be seen.
func TestAPanicIsNotRepeated(t *testing.T) {
	t.Parallel()
	f := knows(func(x exchange) ([]any, error) {
		if x.n == 1 {
			var none *fake
			none.resets++ // the runtime panics
		}
		return x.next()
	})
	if _, err := run(t, f); err == nil || len(f.calls) != 1 || !strings.Contains(err.Error(), "TestAPanicIsNotRepeated") {
		t.Errorf("%v, after %d exchanges", err, len(f.calls))
	}
	wantEcho(t, f, 2)
}

// A client that returns too few replies, or none, causes an error and no panic.
func TestAClientWithTooFewReplies(t *testing.T) {
	t.Parallel()
	f := knows(func(exchange) ([]any, error) { return nil, nil })
	r := NewRunner(f, time.Minute)
	if _, err := r.Run(t.Context(), echo, Keys{"k"}); !errors.Is(err, transport.ErrUnavailable) {
		t.Error(err)
	}
	if err := r.Ping(t.Context()); !errors.Is(err, transport.ErrUnavailable) {
		t.Error(err)
	}
}

// A client that ends its goroutine does not keep Ping waiting.
func TestPingWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	f := clusterFake{&fake{do: func(x exchange) ([]any, error) {
		runtime.Goexit()
		return nil, nil
	}}}
	if err := NewRunner(f, time.Minute).Ping(t.Context(), "a", "b", "c"); !errors.Is(err, transport.ErrUnavailable) {
		t.Error(err)
	}
}
