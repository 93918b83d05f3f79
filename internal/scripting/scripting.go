// Package scripting runs Lua scripts on Redis, over any [transport.Client]: by their hash, and
// by their text where Redis does not know the hash. Each reply carries the number of its call
// (sequence.go), and what a broken connection left in doubt is repeated. So scripts must be
// safe to repeat with the same arguments.
//
// Errors wrap transport.ErrUnavailable, and transport.ErrRefused where nothing was done.
package scripting

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// A Script is Lua for Redis. It returns an array, a number from 0 to 3, or an error.
type Script struct{ text, hash string }

// NewScript returns the script with the given text.
func NewScript(text string) *Script {
	text = framed(text)
	sum := sha1.Sum([]byte(text)) // Redis's choice, not a matter of security
	return &Script{text, hex.EncodeToString(sum[:])}
}

// A Runner may be used by any number of goroutines at once.
type Runner struct {
	client  transport.Client
	timeout time.Duration
	resets  atomic.Int64 // how often the connections were given up
}

// NewRunner returns a runner that takes at most timeout for each call, which should be the
// client's own.
func NewRunner(c transport.Client, timeout time.Duration) *Runner {
	return &Runner{client: c, timeout: timeout}
}

// An Exchange is sent as one write: commands, and a script behind them. All keys are in one slot.
type Exchange struct {
	Before []transport.Command
	Script *Script
	Keys   []string
	Args   []any
}

// Run runs a script.
func (r *Runner) Run(ctx context.Context, s *Script, keys []string, args ...any) (Reply, error) {
	_, reply, err := r.Exchange(ctx, Exchange{Script: s, Keys: keys, Args: args})
	return reply, err
}

// maxRepeats is how often an exchange is repeated. Once does where Redis has restarted; the
// other time is for a bad network.
const maxRepeats = 2

// Exchange returns the replies to the commands, of which some may be errors, and to the script.
// When the exchange is repeated, so are the commands. The error is the script's: with one that
// wraps ErrRefused, the commands were executed if there are replies to them.
func (r *Runner) Exchange(ctx context.Context, x Exchange) (before []any, reply Reply, err error) {
	end := time.Now().Add(r.timeout)
	for repeat := 0; ; repeat++ {
		doubt := err != nil
		before, reply, err = r.try(ctx, x, doubt)
		again := Ambiguous(err) && !isTimeout(err) && repeat < maxRepeats
		if doubt && err != nil {
			err = ambiguous{err}
		}
		if !again {
			return before, reply, err
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end)
		defer cancel()
		if repeat > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(rand.N(time.Millisecond << (2 * repeat))):
			}
		}
	}
}

// try makes an exchange once. doubt: an earlier try may have been done, or may be done yet.
func (r *Runner) try(ctx context.Context, x Exchange, doubt bool) ([]any, Reply, error) {
	call, resets := calls.Add(1), r.resets.Load()
	if doubt {
		call = -call
	}
	script := make(transport.Command, 0, 4+len(x.Keys)+len(x.Args))
	script = append(script, "EVALSHA", x.Script.hash, len(x.Keys))
	for _, key := range x.Keys {
		script = append(script, key)
	}
	script = append(append(script, x.Args...), call)
	slot := ""
	if len(x.Keys) > 0 {
		slot = x.Keys[0]
	}
	replies, err := r.client.Do(ctx, slot, append(slices.Clip(x.Before), script)...)
	if err != nil {
		return nil, Reply{}, err
	}
	before, value := replies[:len(x.Before)], replies[len(x.Before)]
	if isNoScript(value) {
		script[0], script[1] = "EVAL", x.Script.text
		if replies, err = r.client.Do(ctx, slot, script); err != nil {
			return before, Reply{}, err
		}
		if value = replies[0]; isNoScript(value) {
			return nil, Reply{}, r.stray(resets) // EVAL is never told that: it was another's
		}
	}
	if refusal, ok := value.(error); ok {
		return before, Reply{}, fmt.Errorf("%w: %w", transport.ErrRefused, refusal)
	}
	if value, err = unframe(value, call); err != nil {
		return nil, Reply{}, r.stray(resets)
	}
	return before, Reply{value}, nil
}

// stray gives up the connections, unless that has happened since the exchange began, and returns
// the error of one that has got another's reply.
func (r *Runner) stray(resets int64) error {
	if c, ok := r.client.(transport.Resetter); ok && r.resets.CompareAndSwap(resets, resets+1) {
		c.Reset()
	}
	return fmt.Errorf("%w: %w", transport.ErrUnavailable, errStray)
}

// Ping asks Redis whether it is there.
func (r *Runner) Ping(ctx context.Context) error {
	replies, err := r.client.Do(ctx, "", transport.Command{"PING"})
	if err != nil {
		return err
	}
	if refusal, ok := replies[0].(error); ok {
		return fmt.Errorf("%w: %w", transport.ErrRefused, refusal)
	}
	return nil
}

// Subscribe listens to a channel.
func (r *Runner) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	return r.client.Subscribe(ctx, channel)
}

// Ambiguous reports whether err leaves open whether Redis did the work.
func Ambiguous(err error) bool {
	return errors.Is(err, transport.ErrUnavailable) && !errors.Is(err, transport.ErrRefused)
}

// ambiguous is an error, refused or not, after a try that may have been done.
type ambiguous struct{ error }

func (a ambiguous) Is(target error) bool {
	return target != transport.ErrRefused && errors.Is(a.error, target)
}
func (a ambiguous) As(target any) bool { return errors.As(a.error, target) }

// Unanswered reports whether err is that of a Redis that did not answer in time.
func Unanswered(err error) bool { return isTimeout(err) && errors.Is(err, transport.ErrUnavailable) }

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// isNoScript reports whether Redis says that it does not know the script of an EVALSHA.
func isNoScript(reply any) bool {
	err, ok := reply.(error)
	return ok && strings.HasPrefix(err.Error(), "NOSCRIPT")
}
