package goredisstore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/redis/go-redis/v9"
)

// A meddler is a hook around each pipeline, except that of the greeting.
type meddler func(ctx context.Context, cmds []redis.Cmder, next redis.ProcessPipelineHook) error

func (meddler) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (meddler) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (m meddler) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() != "set" {
			return next(ctx, cmds)
		}
		return m(ctx, cmds, next)
	}
}

// What a hook returns does not change what has happened: replies are replies, and an error says that nothing was sent only
// if that is true.
func TestAHookFails(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	errHook := errors.New("the hook is not content")
	for name, tt := range map[string]struct {
		hook meddler
		want string // the replies, or the kind of the error
		done bool
	}{
		"before": {func(context.Context, []redis.Cmder, redis.ProcessPipelineHook) error { return errHook }, "refused", false},
		"after": {func(ctx context.Context, cmds []redis.Cmder, next redis.ProcessPipelineHook) error {
			_ = next(ctx, cmds)
			return errHook
		}, "[OK 1]", true},
		"in between": {func(ctx context.Context, cmds []redis.Cmder, next redis.ProcessPipelineHook) error {
			_ = next(ctx, cmds[:1])
			return errHook
		}, "in doubt", true},
		"instead": {func(context.Context, []redis.Cmder, redis.ProcessPipelineHook) error { return nil }, "refused", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redis.NewClient(&redis.Options{Addr: s.Addr, ContextTimeoutEnabled: true})
			t.Cleanup(func() { _ = server.Close() })
			server.AddHook(tt.hook)
			c, err := NewClient(server, 20*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			replies, err := c.Do(t.Context(), name, transport.Command{"SET", name, "v"}, transport.Command{"EXISTS", name})
			got := fmt.Sprint(replies)
			switch {
			case errors.Is(err, transport.ErrRefused):
				got = "refused"
			case errors.Is(err, transport.ErrUnavailable):
				got = "in doubt"
			}
			if got != tt.want {
				t.Errorf("Do returns %s, %v; want %s", got, err, tt.want)
			}
			if _, done := s.Get(t, name); done != tt.done {
				t.Errorf("the key is set: %v", done)
			}
		})
	}
}
