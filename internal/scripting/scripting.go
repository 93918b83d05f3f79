// Package scripting runs Lua scripts on Redis, over any [transport.Client]: by their hash, and
// by their text where Redis does not know the hash. Each reply carries the number of its call
// (sequence.go), and what a broken connection left in doubt is repeated. So scripts must be
// safe to repeat with the same arguments.
//
// Errors wrap transport.ErrUnavailable, and transport.ErrRefused where nothing was done.
package scripting

import (
	"cmp"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// A Script is Lua for Redis. It returns an array, a number from 0 to 3, or an error.
type Script struct{ text, hash string }

// NewScript returns the script with the given text.
func NewScript(text string) *Script {
	text = framed(text)
	return &Script{text, fmt.Sprintf("%x", sha1.Sum([]byte(text)))} // Redis's choice, not one of security
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

// Plain sends commands without a script, once. Their replies have no number: what they say must
// show whose they are. If Redis refuses the first, for another reason than that it is full, that is
// the error.
func (r *Runner) Plain(ctx context.Context, slot string, commands ...transport.Command) ([]any, error) {
	replies, err := r.client.Do(ctx, slot, commands...)
	if err != nil {
		return nil, err
	}
	if refusal, ok := replies[0].(error); ok && !isFull(refusal) {
		return nil, refused(refusal)
	}
	return replies, nil
}

// Numbered is Plain with the number of the call ahead of the last reply, which may be large. That
// it is another call's is an ErrUnavailable then. If Redis refuses one of the commands before the
// last, that is the error.
func (r *Runner) Numbered(ctx context.Context, slot string, commands ...transport.Command) ([]any, error) {
	call, resets, last := calls.Add(1), r.resets.Load(), len(commands)-1
	replies, err := r.client.Do(ctx, slot, slices.Insert(commands, last, transport.Command{"PING", call})...)
	if err != nil {
		return nil, err
	}
	for _, reply := range replies[:last+1] {
		if refusal, ok := reply.(error); ok {
			return nil, refused(refusal)
		}
	}
	if number, _ := Text(replies[last]); string(number) != strconv.FormatInt(call, 10) {
		return nil, r.stray(resets)
	}
	return slices.Delete(replies, last, last+1), nil
}

// stray gives the connections up, unless that has happened since resets was read, and returns the
// error of the call that has got another's reply.
func (r *Runner) stray(resets int64) error {
	if c, ok := r.client.(transport.Resetter); ok && r.resets.CompareAndSwap(resets, resets+1) {
		c.Reset()
	}
	return fmt.Errorf("%w: %w", transport.ErrUnavailable, errStray)
}

// maxRepeats of an exchange: once does where Redis has restarted; twice is for a bad network.
const maxRepeats = 2

// Exchange returns the replies to the commands, of which some may be errors, and to the script.
// They are repeated with the script. The error is the script's, or where that was refused, that of
// the first command that was refused, which may be why: with one that wraps ErrRefused, the others
// were executed if there are replies to them.
func (r *Runner) Exchange(ctx context.Context, x Exchange) ([]any, Reply, error) {
	script := make(transport.Command, 0, 4+len(x.Keys)+len(x.Args))
	script = append(script, "EVALSHA", x.Script.hash, len(x.Keys))
	for _, key := range x.Keys {
		script = append(script, key)
	}
	slot := ""
	if len(x.Keys) > 0 {
		slot = x.Keys[0]
	}
	script = append(append(script, x.Args...), nil) // the number of the call
	commands, end := append(slices.Clip(x.Before), script), time.Now().Add(r.timeout)
	for repeat := 0; ; repeat++ {
		call, resets := calls.Add(1), r.resets.Load()
		if repeat > 0 { // an earlier try may have been done, or may be done yet
			call = -call
		}
		script[len(script)-1] = call
		var reply Reply
		before, err := r.client.Do(ctx, slot, commands...)
		if err == nil {
			last := len(x.Before)
			value := before[last]
			before = before[:last]
			if refusal, ok := value.(error); ok && isNoScript(refusal) {
				value, err = r.eval(ctx, end, slot, x.Script.text, script)
			}
			if _, ok := value.(error); ok && err == nil {
				value = cmp.Or(firstError(before), value)
			}
			if err == nil {
				reply, err = unframe(value, call)
			}
		}
		if err == errStray {
			before, err = nil, r.stray(resets)
		}
		if err == nil {
			return before, reply, nil
		}
		again := Ambiguous(err) && !isTimeout(err) && repeat < maxRepeats
		if repeat > 0 {
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
			case <-time.After(time.Duration(Chance() * float64(time.Millisecond<<(2*repeat)))):
			}
		}
	}
}

// firstError returns the first reply that is an error, or nil.
func firstError(replies []any) any {
	for _, reply := range replies {
		if refusal, ok := reply.(error); ok {
			return refusal
		}
	}
	return nil
}

// eval sends a script that Redis does not know once more, by its text, until the end of the call.
func (r *Runner) eval(ctx context.Context, end time.Time, slot, text string, script transport.Command) (any, error) {
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	script = slices.Clone(script)
	script[0], script[1] = "EVAL", text
	replies, err := r.client.Do(ctx, slot, script)
	if err != nil {
		return nil, err
	}
	if refusal, ok := replies[0].(error); ok && isNoScript(refusal) {
		return nil, errStray // EVAL is never answered that: it was another's
	}
	return replies[0], nil
}

// Ping asks Redis whether it is there. With keys in different slots it also finds out that it
// is a node of a cluster, where the client does not know that: such a node serves some of them
// only. All else that may be wrong with them is no error, since a cluster may do without a node.
func (r *Runner) Ping(ctx context.Context, keys ...string) error {
	replies, err := r.client.Do(ctx, "", transport.Command{"PING"})
	if err != nil {
		return err
	}
	if refusal, ok := replies[0].(error); ok {
		return refused(refusal)
	}
	moved := make([]error, len(keys))
	var all sync.WaitGroup
	for i, key := range keys {
		all.Go(func() {
			replies, err := r.client.Do(ctx, key, transport.Command{"GET", key})
			if err == nil {
				if refusal, ok := replies[0].(error); ok && strings.HasPrefix(refusal.Error(), moving) {
					moved[i] = refused(refusal)
				}
			}
		})
	}
	all.Wait()
	return cmp.Or(moved...)
}

const moving = "MOVED " // a node of a cluster says it of a key that another one serves

// refused returns the error where Redis has refused a command, and says what that means.
func refused(refusal error) error {
	text := refusal.Error()
	switch {
	case isFull(refusal):
		return fmt.Errorf("%w: it is full: %w", transport.ErrRefused, refusal)
	case strings.HasPrefix(text, moving):
		return fmt.Errorf("%w: it is a cluster, and this client does not know clusters: give store.NewOn one that does: %w",
			transport.ErrRefused, refusal)
	}
	return fmt.Errorf("%w: %w", transport.ErrRefused, refusal)
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

// isFull reports whether Redis refuses what would need memory.
func isFull(refusal error) bool { return strings.HasPrefix(refusal.Error(), "OOM ") }

// isNoScript reports whether Redis says that it does not know the script of an EVALSHA.
func isNoScript(refusal error) bool { return strings.HasPrefix(refusal.Error(), "NOSCRIPT") }

// A Reply is what a script has answered. Whether a client returns text as a string or a []byte
// makes no difference here.
type Reply struct {
	values []any
	number any // in place of an array: an int64
}

// Int returns a reply that is one number.
func (r Reply) Int() (int64, bool) {
	n, ok := r.number.(int64)
	return n, ok
}

// Len is how many values an array has.
func (r Reply) Len() int { return len(r.values) }

// IntAt returns a value of an array that is a number, or the text of one.
func (r Reply) IntAt(i int) (int64, bool) {
	if i < len(r.values) {
		if n, ok := r.values[i].(int64); ok {
			return n, true
		}
	}
	text, _ := r.TextAt(i)
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// TextAt returns a value of an array that is text.
func (r Reply) TextAt(i int) (string, bool) {
	b, ok := r.BytesAt(i)
	return string(b), ok
}

// BytesAt is TextAt for what may be large.
func (r Reply) BytesAt(i int) ([]byte, bool) {
	if i < len(r.values) {
		return Text(r.values[i])
	}
	return nil, false
}

// Text returns a reply that is text.
func Text(reply any) ([]byte, bool) {
	switch v := reply.(type) {
	case []byte:
		return v, true
	case string:
		return []byte(v), true
	}
	return nil, false
}
