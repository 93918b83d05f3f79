package scripting

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// run runs echo over f.
func run(t *testing.T, f *fake) (string, error) {
	t.Helper()
	reply, err := NewRunner(f, time.Minute).Run(t.Context(), echo, Keys{"key", "other"}, "word")
	text, _ := reply.TextAt(0)
	return text, err
}

// wantEcho runs echo over f, which must succeed with so many exchanges.
func wantEcho(t *testing.T, f *fake, exchanges int) {
	t.Helper()
	if text, err := run(t, f); text != "word" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if len(f.calls) != exchanges {
		t.Errorf("%d exchanges, want %d: %v", len(f.calls), exchanges, f.calls)
	}
}

// A script is called by its hash. Where Redis does not know that, it is sent once more, by its text
// and with the same number.
func TestRun(t *testing.T) {
	t.Parallel()
	f := &fake{}
	wantEcho(t, f, 2)
	want := []any{"key", "EVALSHA", echo.hash, 2, "key", "other", "word"}
	if got := f.calls[0][0]; fmt.Sprint(got[:len(got)-1]) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := f.calls[1][0]; got[1] != "EVAL" || got[2] != echo.text || f.number(1) != f.number(2) || f.number(1) < 0 {
		t.Errorf("then %v", got)
	}
	f.calls = nil
	wantEcho(t, f, 1)
}

// A script without keys may go anywhere.
func TestRunWithoutKeys(t *testing.T) {
	t.Parallel()
	f := knows(nil)
	reply, err := NewRunner(f, time.Minute).Run(t.Context(), echo, nil, []byte("bytes"))
	if got, ok := reply.BytesAt(0); string(got) != "bytes" || !ok || err != nil || f.calls[0][0][0] != "" {
		t.Errorf("%q, %v, %v, %v", got, ok, err, f.calls)
	}
}

// A connection that broke is no verdict on Redis: the exchange is repeated, with a negative number,
// since it may have been done.
func TestRunRepeats(t *testing.T) {
	t.Parallel()
	f := knows(func(n int, _ []transport.Command, next func() ([]any, error)) ([]any, error) {
		if n == 1 {
			return nil, errBroken
		}
		return next()
	})
	wantEcho(t, f, 2)
	if f.number(1) < 0 || f.number(2) >= 0 {
		t.Errorf("numbers %d and %d", f.number(1), f.number(2))
	}
}

// What breaks again and again is not repeated for ever, and the second time not at once.
func TestRunGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := knows(func(int, []transport.Command, func() ([]any, error)) ([]any, error) { return nil, errBroken })
		begun := time.Now()
		_, err := run(t, f)
		if !Ambiguous(err) || Unanswered(err) || len(f.calls) != 1+maxRepeats {
			t.Errorf("%v, after %d exchanges", err, len(f.calls))
		}
		if took := time.Since(begun); took == 0 || took > time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A refusal is final, and so is a timeout. Where an earlier try may have been done, the whole may
// have been, whatever came of the last one.
func TestRunFails(t *testing.T) {
	t.Parallel()
	refusal := errors.New("OOM command not allowed")
	for name, tt := range map[string]struct {
		tries      []any // an error of the exchange, or the script's reply
		want       error
		ambiguous  bool
		unanswered bool
	}{
		"Redis says no":                {[]any{refusal}, refusal, false, false},
		"there is no connection":       {[]any{errRefused}, errNobody, false, false},
		"Redis hangs":                  {[]any{errSilent}, transport.ErrUnavailable, true, true},
		"it broke, and Redis says no":  {[]any{errBroken, []any{refusal}}, refusal, true, false},
		"it broke, and no other is":    {[]any{errBroken, errRefused}, errNobody, true, false},
		"it broke, and Redis hangs":    {[]any{errBroken, errSilent}, transport.ErrUnavailable, true, true},
		"it broke twice, and then so":  {[]any{errBroken, errBroken, errRefused}, errNobody, true, false},
		"the dial was not in time":     {[]any{fmt.Errorf("%w: %w", transport.ErrRefused, errSilent)}, transport.ErrRefused, false, true},
		"another client's own errors":  {[]any{transport.ErrUnavailable, transport.ErrRefused}, transport.ErrUnavailable, true, false},
		"what breaks no promise twice": {[]any{errBroken, errBroken, errBroken}, transport.ErrUnavailable, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := knows(func(n int, _ []transport.Command, _ func() ([]any, error)) ([]any, error) {
				switch try := tt.tries[n-1].(type) {
				case error:
					if try == refusal {
						return []any{try}, nil
					}
					return nil, try
				default:
					return try.([]any), nil
				}
			})
			_, err := run(t, f)
			if !errors.Is(err, tt.want) || !errors.Is(err, transport.ErrUnavailable) || len(f.calls) != len(tt.tries) {
				t.Errorf("%v, after %d exchanges", err, len(f.calls))
			}
			if Ambiguous(err) != tt.ambiguous || errors.Is(err, transport.ErrRefused) == tt.ambiguous || Unanswered(err) != tt.unanswered {
				t.Errorf("%v: ambiguous %v, unanswered %v", err, Ambiguous(err), Unanswered(err))
			}
			if text := err.Error(); strings.Count(text, transport.ErrUnavailable.Error()) != 1 && name != "the dial was not in time" {
				t.Errorf("it reads %q", text)
			}
		})
	}
}

// Commands go with a script in the same exchange, and their replies, errors among them, come back.
func TestExchange(t *testing.T) {
	t.Parallel()
	x := Exchange{
		Before: []transport.Command{{"SET", "key", "1"}, {"GET", "key"}},
		Script: echo,
		Keys:   Keys{"key"},
		Args:   []any{"word"},
	}
	refused := errors.New("OOM")
	f := knows(func(n int, commands []transport.Command, next func() ([]any, error)) ([]any, error) {
		replies, err := next()
		replies[0] = refused
		return replies, err
	})
	before, reply, err := NewRunner(f, time.Minute).Exchange(t.Context(), x)
	if text, _ := reply.TextAt(0); text != "word" || err != nil || len(f.calls) != 1 || len(f.calls[0]) != 3 {
		t.Errorf("%v, %v, %v", reply, err, f.calls)
	}
	if len(before) != 2 || before[0] != refused || before[1] != "GETkey" {
		t.Errorf("before it: %v", before)
	}

	// Where the script is refused as well, that may be because of the command, whose error says why.
	f = knows(func(n int, commands []transport.Command, next func() ([]any, error)) ([]any, error) {
		return []any{"OK", refused, errors.New("ERR no such key")}, nil
	})
	_, _, err = NewRunner(f, time.Minute).Exchange(t.Context(), x)
	if !errors.Is(err, refused) || !errors.Is(err, transport.ErrRefused) || strings.Contains(err.Error(), "no such key") {
		t.Errorf("both are refused: %v", err)
	}

	// Where only the script is unknown, the commands are not sent again.
	f = &fake{}
	before, reply, err = NewRunner(f, time.Minute).Exchange(t.Context(), x)
	if text, _ := reply.TextAt(0); text != "word" || err != nil || len(before) != 2 || before[0] != "SETkey1" {
		t.Errorf("%v, %v, %v", before, reply, err)
	}
	if len(f.calls) != 2 || len(f.calls[0]) != 3 || len(f.calls[1]) != 1 {
		t.Errorf("sent %v", f.calls)
	}

	// The script is refused. The commands were executed all the same.
	f = &fake{do: func(n int, _ []transport.Command, next func() ([]any, error)) ([]any, error) {
		if n == 2 {
			return nil, errRefused
		}
		return next()
	}}
	before, _, err = NewRunner(f, time.Minute).Exchange(t.Context(), x)
	if !errors.Is(err, transport.ErrRefused) || len(before) != 2 {
		t.Errorf("%v, %v", before, err)
	}
	if len(x.Before) != 2 || len(x.Args) != 1 {
		t.Errorf("the exchange has become %v", x)
	}
}

// The slices of an exchange are used again. But where there was no reply, a client might still be
// sending them.
func TestSlicesAreUsedAgain(t *testing.T) {
	t.Parallel()
	for _, failed := range []error{nil, errSilent, errBroken} {
		var kept [][]transport.Command
		f := knows(func(_ int, commands []transport.Command, next func() ([]any, error)) ([]any, error) {
			kept = append(kept, commands)
			if len(kept) == 1 && failed != nil {
				return nil, failed
			}
			return next()
		})
		r := NewRunner(f, time.Minute)
		for i := range 100 {
			reply, err := r.Run(t.Context(), echo, Keys{"key"}, fmt.Sprint("value ", i))
			if got, ok := reply.TextAt(0); i > 0 && (err != nil || !ok || got != fmt.Sprint("value ", i)) {
				t.Fatalf("call %d: %q, %v", i, got, err)
			}
		}
		if failed != nil && !strings.Contains(fmt.Sprint(kept[0]), "value 0") {
			t.Errorf("after %v: the commands became %q", failed, kept[0])
		}
		if last := kept[len(kept)-1]; failed == nil && last[0] != nil {
			t.Errorf("after all: %q is kept", last)
		}
	}
}

// What Redis says where it is full does not speak for itself.
func TestRefusalsAreExplained(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"OOM command not allowed":   "it is full",
		"MOVED 3999 127.0.0.1:6381": "it is a cluster",
		"NOPERM no permissions":     "unavailable: NOPERM",
	} {
		f := knows(func(int, []transport.Command, func() ([]any, error)) ([]any, error) {
			return []any{errors.New(text)}, nil
		})
		_, err := run(t, f)
		if !errors.Is(err, transport.ErrRefused) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), text) {
			t.Errorf("%v", err)
		}
	}
}

func TestErrorsOfOthers(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, errors.New("any"), context.DeadlineExceeded} {
		if Ambiguous(err) || Unanswered(err) {
			t.Errorf("%v is none of ours", err)
		}
	}
}
