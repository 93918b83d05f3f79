package scripting

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// A RoundTrip is sent as one write: commands, and a script behind them. All keys are in one slot.
type RoundTrip struct {
	Before []transport.Command
	Script *Script
	Keys   Keys
	Args   []any
	Holds  int // that a commit stores, for observers
}

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
	p := purpose{script: x.Script, holds: x.Holds, now: time.Now()}
	end := p.now.Add(r.timeout)
	var waits deferral
	repeats := 0
	for try := 0; ; try, p.now = try+1, time.Now() {
		call, resets := calls.Add(1), r.resets.Load()
		if repeats > 0 { // an earlier try may have been done, or may still be done
			call = -call
		}
		script[number] = call
		var before []any
		var reply Reply
		replies, err := r.send(ctx, slot, p, commands)
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
	earlier := *repeats
	again := Broken(err) && earlier < maxRepeats
	if earlier > 0 {
		err = maybeDone{err}
	}
	if !again {
		return err
	}
	*repeats++
	if earlier > 0 {
		select {
		case <-ctx.Done(): // the next try fails at once, with the error of an ended context
		case <-time.After(time.Duration(Chance() * float64(time.Millisecond<<(2*earlier)))):
		}
	}
	return nil
}

// maxRepeats of a round trip. One is enough if Redis has restarted; two are for a bad network.
const maxRepeats = 2

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
		value, err = r.eval(ctx, end, slot, x, script)
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
func (r *Runner) eval(ctx context.Context, end time.Time, slot string, x RoundTrip, script transport.Command) (any, error) {
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	script = slices.Clone(script)
	script[0], script[1] = "EVAL", x.Script.text
	replies, err := r.send(ctx, slot, purpose{script: x.Script, holds: x.Holds}, []transport.Command{script})
	if err != nil {
		return nil, err
	}
	if refusal, ok := replies[0].(error); ok && isNoScript(refusal) {
		return nil, errStray // this is no reply to EVAL: it belongs to another call
	}
	return replies[0], nil
}

// RoundTripPlain sends commands without a script. If Redis defers one of the commands, RoundTripPlain sends all of
// them again, since the effect of one command may depend on another. If no time is left for that, some of the
// commands may have been done. If the connection breaks, RoundTripPlain returns the error.
//
// The replies have no number: each reply must show by itself to which call it belongs. If Redis refuses the first
// command, that refusal is the error, and there are replies as well, unless Redis is full.
func (r *Runner) RoundTripPlain(ctx context.Context, slot string, commands ...transport.Command) ([]any, error) {
	p, done := purpose{now: time.Now()}, false
	end := p.now.Add(r.timeout)
	var waits deferral
	for ; ; p.now = time.Now() {
		replies, err := r.send(ctx, slot, p, commands)
		why, isDeferred := err.(deferred)
		for _, reply := range replies {
			if refusal, ok := reply.(error); !ok {
				done = true
			} else if !isDeferred && r.defers(refusal) {
				why, isDeferred = deferred{refusal}, true
			}
		}
		switch {
		case isDeferred:
			if waits.tries == 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithDeadline(ctx, end)
				defer cancel()
			}
			if waits.wait(ctx, why) {
				continue
			}
			err = why.ended(ctx)
		case err == nil:
			if refusal, ok := replies[0].(error); ok && !isFull(refusal) {
				err = Refused(refusal)
			}
			return replies, err
		}
		err = waits.explain(err, r.timeout)
		if done && !MaybeDone(err) {
			err = maybeDone{err}
		}
		return nil, err
	}
}

// RoundTripNumbered is RoundTripPlain with the number of the call behind the last reply. If any reply belongs to
// another call, the number is not in its place, and the error is an ErrUnavailable. A number before the last reply
// would not detect a foreign reply between the two. If Redis refuses a command, that refusal is the error, except
// for the last command.
func (r *Runner) RoundTripNumbered(ctx context.Context, slot string, commands ...transport.Command) ([]any, error) {
	call, resets, last := calls.Add(1), r.resets.Load(), len(commands)-1
	replies, err := r.RoundTripPlain(ctx, slot, append(commands, transport.Command{"PING", call})...)
	if replies == nil {
		return nil, err
	}
	for i, reply := range replies {
		if refusal, ok := reply.(error); ok && i != last {
			return nil, Refused(refusal)
		}
	}
	var digits [20]byte
	if number, _ := Text(replies[last+1]); !bytes.Equal(number, strconv.AppendInt(digits[:0], call, 10)) {
		return nil, r.stray(resets)
	}
	return replies[:last+1], nil
}
