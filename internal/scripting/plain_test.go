package scripting

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// The number comes behind the last reply. Where it does not, one of them is another call's.
func TestNumbered(t *testing.T) {
	t.Parallel()
	refusal := errors.New("READONLY You can't write against a read only replica.")
	for name, tt := range map[string]struct {
		replies func(number any) []any
		want    error
		resets  int
	}{
		"as it should be":             {func(n any) []any { return []any{int64(1), "record", n} }, nil, 0},
		"the last is refused":         {func(n any) []any { return []any{int64(1), refusal, n} }, nil, 0},
		"another number":              {func(any) []any { return []any{int64(1), "record", "7"} }, errStray, 1},
		"a reply that came twice":     {func(any) []any { return []any{int64(7), int64(1), "record"} }, errStray, 1},
		"another's, behind the first": {func(any) []any { return []any{int64(1), "another's record", "record"} }, errStray, 1},
		"no number":                   {func(any) []any { return []any{int64(1), "record", nil} }, errStray, 1},
		"an earlier one is refused":   {func(n any) []any { return []any{refusal, "record", n} }, transport.ErrRefused, 0},
		"the number is refused":       {func(any) []any { return []any{int64(1), "record", refusal} }, transport.ErrRefused, 0},
	} {
		f := &fake{do: func(_ int, commands []transport.Command, _ func() ([]any, error)) ([]any, error) {
			if ping := commands[2]; ping[0] != "PING" {
				t.Errorf("%s: %v, want PING behind the last", name, commands)
			}
			return tt.replies(fmt.Sprint(commands[2][1])), nil
		}}
		replies, err := NewRunner(f, time.Second).Numbered(t.Context(), "slot",
			transport.Command{"PEXPIRE", "key", 1}, transport.Command{"GET", "key"})
		if !errors.Is(err, tt.want) || f.resets != tt.resets {
			t.Errorf("%s: %v and %d resets, want %v and %d", name, err, f.resets, tt.want, tt.resets)
		}
		if err == nil && (len(replies) != 2 || replies[0] != int64(1) || replies[1] == nil) {
			t.Errorf("%s: %v", name, replies)
		}
	}
}

// A full Redis may still do what comes behind the command that it refuses.
func TestPlain(t *testing.T) {
	t.Parallel()
	for refusal, want := range map[string]error{
		"OOM command not allowed when used memory > 'maxmemory'.": nil,
		"READONLY You can't write against a read only replica.":   transport.ErrRefused,
		"NOPERM this user has no permissions to run 'set'":        transport.ErrRefused,
	} {
		f := &fake{do: func(int, []transport.Command, func() ([]any, error)) ([]any, error) {
			return []any{errors.New(refusal), "reply"}, nil
		}}
		_, err := NewRunner(f, time.Second).Plain(t.Context(), "slot", transport.Command{"SET"}, transport.Command{"MGET"})
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", refusal, err, want)
		}
	}
}
