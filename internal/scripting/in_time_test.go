package scripting

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// The tries together take no longer than one may.
func TestRunIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := knows(func(n int, _ []transport.Command, next func() ([]any, error)) ([]any, error) {
			time.Sleep(time.Minute)
			return nil, errBroken
		})
		_, err := run(t, f)
		if !Ambiguous(err) || len(f.calls) != 2 { // the second was not sent
			t.Errorf("%v, after %d exchanges", err, len(f.calls))
		}
	})
}

// A caller that has gone does not wait for the next try.
func TestRunIsCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := knows(func(n int, _ []transport.Command, next func() ([]any, error)) ([]any, error) {
			if n == 2 {
				cancel()
			}
			return nil, errBroken
		})
		begun := time.Now()
		_, err := NewRunner(f, time.Minute).Run(ctx, echo, nil, "word")
		if !Ambiguous(err) || !errors.Is(err, context.Canceled) || time.Since(begun) > 0 {
			t.Errorf("%v, after %v", err, time.Since(begun))
		}
	})
}

// A script that Redis does not know takes two exchanges, but no more time than one.
func TestRunByTextInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		reply, err := NewRunner(&hangs{slow: 50 * time.Second}, time.Minute).Run(t.Context(), echo, nil, "word")
		if took := time.Since(begun); !errors.Is(err, transport.ErrUnavailable) || took != time.Minute {
			t.Errorf("%v, %v, after %v", reply, err, took)
		}
	})
}

// hangs is a client that knows no script by its hash, after a while, and does not answer to its
// text. Its own timeout is a minute.
type hangs struct {
	fake
	slow time.Duration
}

func (h *hangs) Do(ctx context.Context, key string, commands ...transport.Command) ([]any, error) {
	if commands[0][0] == "EVALSHA" {
		time.Sleep(h.slow)
		return h.fake.Do(ctx, key, commands...)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	<-ctx.Done()
	return nil, errSilent
}
