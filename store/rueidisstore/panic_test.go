package rueidisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/redis/rueidis"
)

// P7: if a function of ClientOption panics, or ends the goroutine, the round trips that need it fail, at first
// and after the connection has broken. The process does not end. Later everything works.
func TestAFunctionOfTheOptionsPanics(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	for name, bug := range map[string]func(){"a panic": func() { panic("a bug") }, "Goexit": runtime.Goexit} {
		for function, set := range map[string]func(o *rueidis.ClientOption, do func()){
			"DialCtxFn": func(o *rueidis.ClientOption, do func()) {
				o.DialCtxFn = func(ctx context.Context, address string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
					do()
					return d.DialContext(ctx, "tcp", address)
				}
			},
			"AuthCredentialsFn": func(o *rueidis.ClientOption, do func()) {
				o.AuthCredentialsFn = func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
					do()
					return rueidis.AuthCredentials{}, nil
				}
			},
		} {
			t.Run(name+" in "+function, func(t *testing.T) {
				t.Parallel()
				var armed atomic.Bool
				o := at(s)
				set(&o, func() {
					if armed.Load() {
						bug()
					}
				})
				c := opened(t, o, patient.Timeout)
				ping := func() error {
					_, err := c.Do(t.Context(), "", transport.Command{"PING"})
					return err
				}
				for range 2 {
					armed.Store(true)
					c.Reset()
					redistest.Eventually(t, "an error says what has happened", func() bool {
						err := ping()
						return errors.Is(err, transport.ErrUnavailable) && strings.Contains(err.Error(), map[string]string{"a panic": "a bug", "Goexit": "Goexit"}[name])
					})
					armed.Store(false)
					redistest.Eventually(t, "Redis is found", func() bool { return ping() == nil })
				}
			})
		}
	}
}

// A dial function that returns neither a connection nor an error does not end the process, either.
func TestADialReturnsNothing(t *testing.T) {
	t.Parallel()
	o := at(redistest.Real(t))
	o.DialCtxFn = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return nil, nil }
	_, err := opened(t, o, patient.Timeout).Do(t.Context(), "", transport.Command{"PING"})
	if !errors.Is(err, transport.ErrRefused) || !strings.Contains(err.Error(), "returned no connection") {
		t.Error(err)
	}
}

// A round trip that runs in our own goroutine, since its caller has little time, panics in the caller's
// goroutine.
func TestAGuardedExchangePanics(t *testing.T) {
	t.Parallel()
	c := &client{timeout: time.Minute}
	for name, bug := range map[string]func(){"a panic": func() { panic("a bug") }, "Goexit": runtime.Goexit} {
		var caught any
		func() {
			defer func() { caught = recover() }()
			now := time.Now()
			c.health.good(now)
			replies, err := c.guarded(exchange{redis: buggy{bug: bug}, commands: make([]rueidis.Completed, 1)}, now, now.Add(time.Minute))
			if len(replies) > 0 || err != nil {
				t.Errorf("%s: %v, %v", name, replies, err)
			}
		}()
		if (caught != nil) != (name == "a panic") || c.health.pending.Load() != 0 {
			t.Errorf("%s: caught %v, and %d round trips are under way", name, caught, c.health.pending.Load())
		}
	}
}

// A buggy client of rueidis panics, or ends the goroutine.
type buggy struct {
	rueidis.Client
	bug func()
}

func (b buggy) Do(context.Context, rueidis.Completed) rueidis.RedisResult {
	b.bug()
	return rueidis.RedisResult{}
}
