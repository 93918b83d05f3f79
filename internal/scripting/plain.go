package scripting

import (
	"bytes"
	"context"
	"strconv"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// Plain sends commands without a script, once unless Redis puts one of them off. Their replies have no number: what they say must
// show whose they are. If Redis refuses the first, for another reason than that it is full, that is
// the error.
func (r *Runner) Plain(ctx context.Context, slot string, commands ...transport.Command) ([]any, error) {
	replies, err := r.plainly(ctx, slot, commands)
	if err != nil {
		return nil, err
	}
	if refusal, ok := replies[0].(error); ok && !isFull(refusal) {
		return nil, refused(refusal)
	}
	return replies, nil
}

// Numbered is Plain with the number of the call behind the last reply. A reply that is another
// call's, wherever it comes, moves that from its place, and is an ErrUnavailable then: ahead of the
// last reply the number would not show what comes between the two. If Redis refuses one of the
// commands before the last, that is the error.
func (r *Runner) Numbered(ctx context.Context, slot string, commands ...transport.Command) ([]any, error) {
	call, resets, last := calls.Add(1), r.resets.Load(), len(commands)-1
	replies, err := r.plainly(ctx, slot, append(commands, transport.Command{"PING", call}))
	if err != nil {
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

// plainly sends commands until Redis puts none of them off. They are sent again all together: what
// one of them does may depend on another. If time runs out, some of them may have been done.
func (r *Runner) plainly(ctx context.Context, slot string, commands []transport.Command) ([]any, error) {
	var patience patience
	defer patience.over()
	end, done := time.Now().Add(r.timeout), false
	for {
		replies, err := r.do(ctx, slot, commands)
		why, putOff := err.(later)
		for _, reply := range replies {
			if refusal, ok := reply.(error); !ok {
				done = true
			} else if !putOff && r.putsOff(refusal) {
				why, putOff = later{refusal}, true
			}
		}
		if putOff {
			var inTime bool
			if ctx, inTime = patience.wait(ctx, end, why); inTime {
				continue
			}
			err = notInTime(ctx, why)
		}
		err = patience.explain(err, r.timeout)
		switch {
		case err == nil:
			return replies, nil
		case done && !Ambiguous(err):
			return nil, ambiguous{err}
		default:
			return nil, err
		}
	}
}
