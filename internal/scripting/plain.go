package scripting

import (
	"context"
	"slices"
	"strconv"

	"github.com/a2139e8d/latchkey/locker/transport"
)

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
