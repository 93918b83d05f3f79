package scripting

import (
	"bytes"
	"context"
	"strconv"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// RoundTripPlain sends commands without a script. If Redis defers one of the commands, RoundTripPlain sends all of
// them again, since the effect of one command may depend on another. If no time is left for that, some of the
// commands may have been done.
//
// The replies have no number: each reply must show by itself to which call it belongs. If Redis refuses the first
// command, that refusal is the error, and there are replies as well, unless Redis is full.
func (r *Runner) RoundTripPlain(ctx context.Context, slot string, commands ...transport.Command) ([]any, error) {
	end, done := time.Now().Add(r.timeout), false
	var waits deferral
	for {
		replies, err := r.send(ctx, slot, commands)
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
				err = refused(refusal)
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
			return nil, refused(refusal)
		}
	}
	var digits [20]byte
	if number, _ := Text(replies[last+1]); !bytes.Equal(number, strconv.AppendInt(digits[:0], call, 10)) {
		return nil, r.stray(resets)
	}
	return replies[:last+1], nil
}
