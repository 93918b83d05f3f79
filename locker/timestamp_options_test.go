package locker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// What cannot work is the error of every Lock.
func TestTimestampUnusable(t *testing.T) {
	t.Parallel()
	_, err := NewTimestamp(nil, Options{Lease: -1}).Lock(t.Context(), "k")
	if err == nil || !strings.Contains(err.Error(), "Options.Lease is -1ns") {
		t.Errorf("wrong options: %v", err)
	}
	if _, err := NewTimestamp(nil, Options{}).Lock(t.Context(), "k"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("no pool: %v", err)
	}
}

func TestTimestampTimeout(t *testing.T) {
	for given, want := range map[time.Duration]time.Duration{0: DefaultTimeout, s: s} {
		client := NewTimestamp(nil, Options{Timeout: given}).algorithm.(timestamp).client
		if got := client.(*poolClient).timeout; got != want {
			t.Errorf("Timeout %v: an exchange may take %v", given, got)
		}
	}
}

// sentTimes is a Client that notes the times it was given.
type sentTimes []int64

func (c *sentTimes) Eval(_ context.Context, _ *Script, _ Keys, args ...any) (any, error) {
	*c = append(*c, args[2].(int64))
	return []any{int64(stateDone)}, nil
}

func (c *sentTimes) Subscribe(context.Context, string) (Subscription, error) {
	return nil, ErrUnavailable
}

// No time at all means to delete the lock. So that is not what an extension by less
// than a millisecond sends.
func TestTimestampExtendByNothing(t *testing.T) {
	var sent sentTimes
	a := timestamp{client: &sent}
	for _, d := range []time.Duration{-s, 0, 1, time.Millisecond, s} {
		if err := a.Extend(t.Context(), "k", "token", d); err != nil {
			t.Error(err)
		}
	}
	if want := (sentTimes{1, 1, 1, 1, 1000}); !slices.Equal(sent, want) {
		t.Errorf("sent %d, want %d", sent, want)
	}
}
