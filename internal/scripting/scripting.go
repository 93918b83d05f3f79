// Package scripting runs Lua scripts on Redis, over any [transport.Client]. What is
// the same for all clients is here: a script is called by its hash, and by its text
// where Redis does not know it; each reply carries the number of its call; and what a
// broken connection leaves in doubt is repeated. So scripts must be safe to repeat with
// the same arguments.
//
// All errors wrap transport.ErrUnavailable, and transport.ErrRefused too where nothing
// was done.
package scripting

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"math/rand/v2"
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

// An Exchange is sent as one write: some commands, and a script behind them.
type Exchange struct {
	Before []transport.Command
	Script *Script
	Keys   []string // all in one slot, as those of Before
	Args   []any
}

// A Runner runs scripts. It is used by any number of goroutines at once.
type Runner struct {
	client  transport.Client
	timeout time.Duration
	resets  atomic.Int64 // how often connections were given up
}

// NewRunner returns a runner whose calls take at most timeout, which should be the
// client's own.
func NewRunner(c transport.Client, timeout time.Duration) *Runner {
	return &Runner{client: c, timeout: timeout}
}

// Run runs a script.
func (r *Runner) Run(ctx context.Context, s *Script, keys []string, args ...any) (Reply, error) {
	_, reply, err := r.Do(ctx, Exchange{Script: s, Keys: keys, Args: args})
	return reply, err
}

// maxRepeats is how often an exchange is repeated. Once is enough if Redis has
// restarted; more often helps where connections break again and again.
const maxRepeats = 4

// Do makes an exchange, and returns the replies to the commands before the script,
// among them those that are errors, and that of the script. If the exchange is repeated,
// so are the commands, unless only the script was unknown.
func (r *Runner) Do(ctx context.Context, x Exchange) (before []any, reply Reply, err error) {
	end := time.Now().Add(r.timeout)
	commands := append(x.Before[:len(x.Before):len(x.Before)], x.evalsha())
	maybe := false
	for repeat := 0; ; repeat++ {
		before, reply, err = r.try(ctx, x, commands, maybe)
		if err == nil {
			return before, reply, nil
		}
		maybe = maybe || Ambiguous(err)
		if !Ambiguous(err) || isTimeout(err) || repeat == maxRepeats || !pause(ctx, repeat, end) {
			break
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end)
		defer cancel()
	}
	if maybe {
		return nil, Reply{}, transport.Unavailable(err)
	}
	return nil, Reply{}, transport.Refused(err)
}

// evalsha returns the command that calls the script, without the call's number.
func (x *Exchange) evalsha() transport.Command {
	c := make(transport.Command, 0, 3+len(x.Keys)+len(x.Args)+1)
	c = append(c, "EVALSHA", x.Script.hash, len(x.Keys))
	for _, key := range x.Keys {
		c = append(c, key)
	}
	c = append(c, x.Args...)
	return append(c, nil)
}

// slot returns a key that says where the exchange goes.
func (x *Exchange) slot() string {
	if len(x.Keys) == 0 {
		return ""
	}
	return x.Keys[0]
}

// try makes an exchange once. again: an earlier try may have been done, or may be done yet.
func (r *Runner) try(ctx context.Context, x Exchange, commands []transport.Command, again bool) ([]any, Reply, error) {
	call := calls.Add(1)
	if again {
		call = -call
	}
	resets := r.resets.Load()
	n := len(commands) - 1
	script := commands[n]
	script[0], script[1], script[len(script)-1] = "EVALSHA", x.Script.hash, call
	replies, err := r.client.Do(ctx, x.slot(), commands...)
	if err != nil {
		return nil, Reply{}, err
	}
	before, value := replies[:n], replies[n]
	if isNoScript(value) {
		script[0], script[1] = "EVAL", x.Script.text
		replies, err = r.client.Do(ctx, x.slot(), script)
		if err != nil {
			return nil, Reply{}, err
		}
		if value = replies[0]; isNoScript(value) {
			return nil, Reply{}, r.stray(resets) // EVAL is never told that: it was another's
		}
	}
	if refusal, ok := value.(error); ok {
		return nil, Reply{}, transport.Refused(refusal)
	}
	value, err = unframe(value, call)
	if err != nil {
		return nil, Reply{}, r.stray(resets)
	}
	return before, Reply{value}, nil
}

// stray gives up the connections, unless that has happened since the exchange began,
// and returns the error of an exchange that has got another's reply.
func (r *Runner) stray(resets int64) error {
	if c, ok := r.client.(transport.Resetter); ok && r.resets.CompareAndSwap(resets, resets+1) {
		c.Reset()
	}
	return transport.Unavailable(errStray)
}

// pause waits before the next try, but not before the first repetition. It reports
// whether there is time for it.
func pause(ctx context.Context, repeat int, end time.Time) bool {
	if repeat == 0 {
		return ctx.Err() == nil && time.Now().Before(end)
	}
	d := rand.N(time.Millisecond << (2 * repeat))
	if time.Until(end) <= d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Ping asks whether Redis is there.
func (r *Runner) Ping(ctx context.Context) error {
	resets := r.resets.Load()
	replies, err := r.client.Do(ctx, "", transport.Command{"PING"})
	if err != nil {
		return err
	}
	switch pong := replies[0].(type) {
	case error:
		return transport.Refused(pong)
	case string:
		if pong == "PONG" {
			return nil
		}
	case []byte:
		if string(pong) == "PONG" {
			return nil
		}
	}
	return r.stray(resets)
}

// Subscribe listens to a channel.
func (r *Runner) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	return r.client.Subscribe(ctx, channel)
}

// Ambiguous reports whether err leaves open whether Redis did the work.
func Ambiguous(err error) bool {
	return errors.Is(err, transport.ErrUnavailable) && !errors.Is(err, transport.ErrRefused)
}

// Unanswered reports whether err is that of an exchange that Redis did not answer in time.
func Unanswered(err error) bool { return isTimeout(err) && errors.Is(err, transport.ErrUnavailable) }

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// isNoScript reports whether Redis says that it does not know a script.
func isNoScript(reply any) bool {
	err, ok := reply.(error)
	return ok && strings.HasPrefix(err.Error(), "NOSCRIPT")
}
