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

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/gomodule/redigo/redis"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	patience = 5 * time.Second // what is broken does not get better by waiting
	goleak.VerifyTestMain(m)
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
