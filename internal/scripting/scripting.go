// Package scripting runs Lua scripts on Redis, over any [transport.Client].
//
//   - A round trip is commands and a script behind them, sent as one write. A plain one has no script.
//   - A try is one sending of a round trip. If its connection breaks, the round trip is tried again. So scripts
//     must be safe to repeat with the same arguments.
//   - A refusal is an error that Redis replies. Redis defers a command if it refuses the command now, but will
//     execute it soon.
//   - A call has a number, which comes back in its reply. A reply with another number is stray.
//   - A round trip that has failed may have been done, unless its error wraps [transport.ErrRefused].
//
// scripting.go sends scripts, plain.go plain commands, and client.go is the border to the client. sequence.go
// numbers the calls. deferral.go waits for what is deferred. errors.go has the errors, which all wrap
// [transport.ErrUnavailable].
package scripting

import (
	"context"
	"crypto/sha1"
	"embed"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// A Script is Lua for Redis, in the frame of package lua. It returns an array, a number from 0 to 3, or an error.
// Redis knows a script by its hash.
type Script struct {
	text string
	hash any // a string, as an argument
}

// NewScript returns the script with the given text.
func NewScript(text string) *Script {
	return &Script{text, fmt.Sprintf("%x", sha1.Sum([]byte(text)))} // SHA-1 is Redis's choice; it need not be secure
}

// Golden returns a script of the directory golden. It panics if there is none with that name.
func Golden(files embed.FS, name string) *Script {
	text, err := files.ReadFile("golden/" + name + ".lua")
	if err != nil {
		panic(err)
	}
	return NewScript(string(text))
}

// A Runner may be used by any number of goroutines at once.
type Runner struct {
	client  transport.Client
	timeout time.Duration
	cluster transport.ClusterClient // nil: the client does not know clusters
	resets  atomic.Int64            // how many times the connections were given up
}

// NewRunner returns a runner whose round trips take at most timeout each. It should be the client's own timeout.
func NewRunner(c transport.Client, timeout time.Duration) *Runner {
	cluster, _ := c.(transport.ClusterClient)
	return &Runner{client: c, timeout: timeout, cluster: cluster}
}

// Keys are strings, as the []any that clients want: to convert them for each call costs time.
type Keys []any

// A RoundTrip is sent as one write: commands, and a script behind them. All keys are in one slot.
type RoundTrip struct {
	Before []transport.Command
	Script *Script
	Keys   Keys
	Args   []any
}

// Run runs a script.
func (r *Runner) Run(ctx context.Context, s *Script, keys Keys, args ...any) (Reply, error) {
	_, reply, err := r.RoundTrip(ctx, RoundTrip{Script: s, Keys: keys, Args: args})
	return reply, err
}

// maxRepeats of a round trip. One is enough if Redis has restarted; two are for a bad network.
const maxRepeats = 2

// RoundTrip returns the replies to the commands, of which some may be errors, and the reply to the script. The
// commands are repeated together with the script. The error is the script's. But if Redis refused the script and
// also a command, the error is the refusal of the first such command, which may be the cause. If the error wraps
// ErrRefused, and there are replies to the commands, the other commands were executed.
func (r *Runner) RoundTrip(ctx context.Context, x RoundTrip) ([]any, Reply, error) {
	own := scratches.Get().(*scratch)
	script := append(own.script, "EVALSHA", x.Script.hash, len(x.Keys))
	script = append(script, x.Keys...)
	slot := ""
	if len(x.Keys) > 0 {
		slot = x.Keys[0].(string)
	}
	number := len(script) // where the number of the call is
	script = append(append(script, nil), x.Args...)
	commands := append(append(own.commands, x.Before...), script)
	end := time.Now().Add(r.timeout)
	var waits deferral
	repeats := 0
	for try := 0; ; try++ {
		call, resets := calls.Add(1), r.resets.Load()
		if repeats > 0 { // an earlier try may have been done, or may still be done
			call = -call
		}
		script[number] = call
		var before []any
		var reply Reply
		replies, err := r.send(ctx, slot, commands)
		if err == nil {
			before = replies[:len(x.Before)]
			reply, err = r.replyOf(ctx, end, slot, x, script, replies, call)
		}
		if err == nil {
			if repeats == 0 { // otherwise the client may be using them still
				clear(script) // an argument may be a large record
				clear(commands)
				own.script, own.commands = script[:0], commands[:0]
				scratches.Put(own)
			}
			return before, reply, nil
		}
		if err == errStray {
			before, err = nil, r.stray(resets)
		}
		if try == 0 { // all others end with the round trip
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, end)
			defer cancel()
		}
		err = r.retries(ctx, err, &waits, &repeats)
		if err != nil {
			return before, reply, err
		}
	}
}

// retries decides after a try that has failed with err. If the round trip must be tried again, retries waits until
// it is time, and returns nil. Otherwise it returns the error of the round trip.
func (r *Runner) retries(ctx context.Context, err error, waits *deferral, repeats *int) error {
	if why, ok := err.(deferred); ok {
		if waits.wait(ctx, why) {
			return nil // not counted as a repetition, since nothing was done
		}
		err = why.ended(ctx)
	}
	err = waits.explain(err, r.timeout)
	before := *repeats
	again := Broken(err) && before < maxRepeats
	if before > 0 {
		err = maybeDone{err}
	}
	if !again {
		return err
	}
	*repeats++
	if before > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(Chance() * float64(time.Millisecond<<(2*before)))):
		}
	}
	return nil
}

// A scratch is memory for the commands of a round trip. It is used again if the first try has succeeded. After an
// error it is not used again, since a careless client might still be sending.
type scratch struct {
	script   transport.Command
	commands []transport.Command
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// replyOf returns the reply to the script of a try. The error is a deferred if Redis has deferred the script, or
// errStray if the reply belongs to another call. If Redis does not know the script, replyOf sends it once more.
func (r *Runner) replyOf(ctx context.Context, end time.Time, slot string, x RoundTrip, script transport.Command, replies []any, call int64) (Reply, error) {
	value := replies[len(x.Before)]
	if refusal, ok := value.(error); ok && isNoScript(refusal) {
		var err error
		value, err = r.eval(ctx, end, slot, x.Script.text, script)
		if err != nil {
			return Reply{}, err
		}
	}
	if refusal, ok := value.(error); ok {
		if r.defers(refusal) {
			return Reply{}, deferred{refusal}
		}
		for _, reply := range replies[:len(x.Before)] {
			if first, ok := reply.(error); ok {
				value = first
				break
			}
		}
	}
	return unframe(value, call)
}

// eval sends a script that Redis does not know once more, by its text, until the end of the round trip.
func (r *Runner) eval(ctx context.Context, end time.Time, slot, text string, script transport.Command) (any, error) {
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	script = slices.Clone(script)
	script[0], script[1] = "EVAL", text
	replies, err := r.send(ctx, slot, []transport.Command{script})
	if err != nil {
		return nil, err
	}
	if refusal, ok := replies[0].(error); ok && isNoScript(refusal) {
		return nil, errStray // this is no reply to EVAL: it belongs to another call
	}
	return replies[0], nil
}

// A Reply is a script's reply. A client may return text as a string or as a []byte.
type Reply struct {
	values []any
	number any // an int64, if the reply is a number and not an array
}

// Int returns the number, if the reply is a number.
func (r Reply) Int() (int64, bool) {
	n, ok := r.number.(int64)
	return n, ok
}

// Len returns how many values an array has.
func (r Reply) Len() int { return len(r.values) }

// IntAt returns value i of an array, if it is a number, or the text of one.
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

// TextAt returns value i of an array, if it is text.
func (r Reply) TextAt(i int) (string, bool) {
	b, ok := r.BytesAt(i)
	return string(b), ok
}

// BytesAt is TextAt for a value that may be large.
func (r Reply) BytesAt(i int) ([]byte, bool) {
	if i < len(r.values) {
		return Text(r.values[i])
	}
	return nil, false
}

// Text returns a reply to a command, if it is text.
func Text(reply any) ([]byte, bool) {
	switch v := reply.(type) {
	case []byte:
		return v, true
	case string:
		return []byte(v), true
	}
	return nil, false
}
