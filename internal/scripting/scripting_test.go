package scripting

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// run runs echo over f.
func run(t *testing.T, f transport.Client) (string, error) {
	t.Helper()
	reply, err := NewRunner(f, time.Minute).Run(t.Context(), echo, Keys{"key", "other"}, "word")
	text, _ := reply.TextAt(0)
	return text, err
}

// wantEcho runs echo over f, which must succeed with so many round trips.
func wantEcho(t *testing.T, f *fake, exchanges int) {
	t.Helper()
	if text, err := run(t, f); text != "word" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if len(f.calls) != exchanges {
		t.Errorf("%d exchanges, want %d: %v", len(f.calls), exchanges, f.calls)
	}
}

// A script is called by its hash. If Redis does not know the hash, the script is sent again, by its text and with
// the same number. Without keys it may go to any node.
func TestRun(t *testing.T) {
	t.Parallel()
	f := &fake{}
	wantEcho(t, f, 2)
	want := []any{"key", "EVALSHA", echo.hash, 2, "key", "other", "word"}
	first, second := f.calls[0][0], f.calls[1][0]
	const number = 6
	if fmt.Sprint(slices.Delete(slices.Clone(first), number, number+1)) != fmt.Sprint(want) || first[number] != second[number] {
		t.Errorf("%v, want %v and a number", first, want)
	}
	if second[1] != "EVAL" || second[2] != echo.text {
		t.Errorf("then %v", second)
	}
	f.wantRepetitions(t, never)
	f.calls = nil
	wantEcho(t, f, 1)
	reply, err := NewRunner(f, time.Minute).Run(t.Context(), echo, nil, []byte("bytes"))
	if got, ok := reply.BytesAt(0); string(got) != "bytes" || !ok || err != nil || f.calls[1][0][0] != "" {
		t.Errorf("%q, %v, %v, %v", got, ok, err, f.calls)
	}
}

// A refusal is final, and so is a timeout. A connection that breaks again and again ends the repetitions. If an
// earlier try may have been done, the error says so, whatever the outcome of the last try.
func TestRunFails(t *testing.T) {
	t.Parallel()
	full := "OOM command not allowed"
	for name, tt := range map[string]struct {
		tries      []any
		want       error
		text       string
		ambiguous  bool
		unanswered bool
	}{
		"Redis is full":                {[]any{refusal(full)}, nil, "it is full: " + full, false, false},
		"Redis is a cluster":           {[]any{refusal("MOVED 3999 127.0.0.1:6381")}, nil, "it is a cluster", false, false},
		"Redis says no":                {[]any{refusal("ERR no")}, nil, "unavailable: ERR no", false, false},
		"a right is missing":           {[]any{refusal("NOPERM no permissions")}, nil, "ACL LOG names: NOPERM no permissions", false, false},
		"there is no connection":       {[]any{errRefused}, errNobody, "", false, false},
		"Redis hangs":                  {[]any{errSilent}, nil, "", true, true},
		"it broke, then Redis refuses": {[]any{errBroken, refusal(full)}, nil, full, true, false},
		"it broke, then no connection": {[]any{errBroken, errRefused}, errNobody, "", true, false},
		"it broke, then Redis hangs":   {[]any{errBroken, errSilent}, nil, "", true, true},
		"it broke twice, then none":    {[]any{errBroken, errBroken, errRefused}, errNobody, "", true, false},
		"the dial was not in time":     {[]any{fmt.Errorf("%w: %w", transport.ErrRefused, errSilent)}, nil, "", false, true},
		"another client's own errors":  {[]any{transport.ErrUnavailable, transport.ErrRefused}, nil, "", true, false},
		"it breaks again and again":    {[]any{errBroken, errBroken, errBroken}, errBroken, "", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, begun := knows(meets(tt.tries...)), time.Now()
				_, err := run(t, f)
				if !errors.Is(err, transport.ErrUnavailable) || tt.want != nil && !errors.Is(err, tt.want) || len(f.calls) != len(tt.tries) {
					t.Fatalf("%v, after %d exchanges", err, len(f.calls))
				}
				if MaybeDone(err) != tt.ambiguous || errors.Is(err, transport.ErrRefused) == tt.ambiguous || TimedOut(err) != tt.unanswered {
					t.Errorf("%v: ambiguous %v, unanswered %v", err, MaybeDone(err), TimedOut(err))
				}
				if text := err.Error(); !strings.Contains(text, tt.text) || strings.Count(text, transport.ErrUnavailable.Error()) != 1 && name != "the dial was not in time" {
					t.Errorf("the error is %q", text)
				}
				if took := time.Since(begun); took > 0 != (len(tt.tries) > 2) || took > time.Second { // only the second repetition waits
					t.Errorf("the call took %v", took)
				}
			})
		})
	}
	for _, err := range []error{nil, errors.New("any"), context.DeadlineExceeded} {
		if MaybeDone(err) || TimedOut(err) {
			t.Errorf("%v is not an error of a round trip", err)
		}
	}
}

// All tries together take no longer than one round trip may, and a caller that has gone waits for no further try.
// This also holds for sending the text of a script that Redis does not know.
func TestRunIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		f := knows(func(x exchange) ([]any, error) {
			redistest.Elapse(time.Minute)
			return nil, errBroken
		})
		if _, err := run(t, f); !MaybeDone(err) || len(f.calls) != 2 || time.Since(begun) != time.Minute { // the second try could not be sent in time
			t.Errorf("%v, after %d exchanges and %v", err, len(f.calls), time.Since(begun))
		}

		begun = time.Now()
		f = &fake{do: func(x exchange) ([]any, error) {
			if x.commands[0][0] == "EVALSHA" { // after a while, Redis replies that it does not know the script
				redistest.Elapse(50 * time.Second)
				return x.next()
			}
			<-x.ctx.Done()
			return nil, errSilent
		}}
		if _, err := run(t, f); !errors.Is(err, transport.ErrUnavailable) || time.Since(begun) != time.Minute {
			t.Errorf("by its text: %v, after %v", err, time.Since(begun))
		}

		ctx, cancel := context.WithCancel(t.Context())
		f = knows(func(x exchange) ([]any, error) {
			if x.n == 2 {
				cancel()
			}
			return nil, errBroken
		})
		begun = time.Now()
		_, err := NewRunner(f, time.Minute).Run(ctx, echo, nil, "word")
		if !MaybeDone(err) || !errors.Is(err, context.Canceled) || time.Since(begun) > 0 {
			t.Errorf("cancelled: %v, after %v", err, time.Since(begun))
		}
	})
}

// Commands are sent with a script in the same round trip, and their replies come back, including errors. If both
// a command and the script are refused, the command may be the cause, so its error is returned.
func TestExchange(t *testing.T) {
	t.Parallel()
	full := errors.New("OOM so it is")
	for name, tt := range map[string]struct {
		f         *fake
		exchanges []int // how many commands each had
		before    []any
		err       string
	}{
		"all is well": {knows(nil), []int{3}, []any{"SETkey1", "GETkey"}, ""},
		"a command is refused": {knows(func(x exchange) ([]any, error) {
			replies, err := x.next()
			replies[0] = full
			return replies, err
		}), []int{3}, []any{full, "GETkey"}, ""},
		"and the script, too":     {knows(meets([]any{"OK", full, errors.New("ERR no key")})), []int{3}, []any{"OK", full}, "it is full: OOM so it is"},
		"the script is unknown":   {&fake{}, []int{3, 1}, []any{"SETkey1", "GETkey"}, ""},
		"and its text is refused": {&fake{do: meets(nil, errRefused)}, []int{3, 1}, []any{"SETkey1", "GETkey"}, "connection refused"},
	} {
		x := RoundTrip{Before: []transport.Command{{"SET", "key", "1"}, {"GET", "key"}}, Script: echo, Keys: Keys{"key"}, Args: []any{"word"}}
		before, reply, err := NewRunner(tt.f, time.Minute).RoundTrip(t.Context(), x)
		text, _ := reply.TextAt(0)
		if tt.err == "" && (err != nil || text != "word") {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		if tt.err != "" && (!errors.Is(err, transport.ErrRefused) || !strings.HasSuffix(err.Error(), tt.err)) {
			t.Errorf("%s: %v, want %s", name, err, tt.err)
		}
		if fmt.Sprint(before) != fmt.Sprint(tt.before) || len(x.Before) != 2 || len(x.Args) != 1 {
			t.Errorf("%s: replies of the commands: %v; the round trip has become %v", name, before, x)
		}
		var sent []int
		for _, call := range tt.f.calls {
			sent = append(sent, len(call))
		}
		if !slices.Equal(sent, tt.exchanges) {
			t.Errorf("%s: sent %v", name, tt.f.calls)
		}
	}
}

// The slices of a round trip are used again, and keep no arguments alive. But without a reply they are not used
// again, since a client might still be sending them.
func TestSlicesAreUsedAgain(t *testing.T) {
	t.Parallel()
	for _, failed := range []error{nil, errSilent, errBroken} {
		var kept [][]transport.Command
		f := knows(func(x exchange) ([]any, error) {
			kept = append(kept, x.commands)
			if len(kept) == 1 && failed != nil {
				return nil, failed
			}
			return x.next()
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
			t.Errorf("after the last call %q is kept alive", last)
		}
	}
}

// A ping fails if Redis refuses it or does not reply. An idle connection that the server has closed is no
// failure.
func TestPing(t *testing.T) {
	t.Parallel()
	const loading = "LOADING Redis is loading the dataset in memory"
	for name, tt := range map[string]struct {
		tries      []any
		refused    bool
		unanswered bool
	}{
		"it is there":                  {nil, false, false},
		"it is there, on a second try": {[]any{transport.ErrUnavailable}, false, false},
		"it is loading":                {[]any{refusal(loading)}, true, false},
		"it is silent":                 {[]any{errSilent}, false, true},
	} {
		f := knows(meets(tt.tries...))
		err := NewRunner(f, time.Minute).Ping(t.Context())
		if (err != nil) != (tt.refused || tt.unanswered) || errors.Is(err, transport.ErrRefused) != tt.refused || TimedOut(err) != tt.unanswered {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A node of a cluster serves only some of the keys. A client that does not know clusters gets an error for the
// others, and Ping reports that. Other errors of a key do not matter to Ping.
func TestPingFindsACluster(t *testing.T) {
	t.Parallel()
	for reply, want := range map[error]bool{
		errors.New("MOVED 3999 127.0.0.1:6381"): true,
		errors.New("NOPERM no right to GET"):    false,
		errSilent:                               false,
	} {
		f := knows(func(x exchange) ([]any, error) {
			switch command := x.commands[0]; {
			case command[0] != "GET" || command[1] != "c":
				return x.next()
			case reply == errSilent:
				return nil, reply
			}
			return []any{reply}, nil
		})
		err := NewRunner(f, time.Minute).Ping(t.Context(), "a", "b", "c", "d")
		if want != (errors.Is(err, reply) && errors.Is(err, transport.ErrRefused) && strings.Contains(err.Error(), "cluster")) || !want && err != nil {
			t.Errorf("%v: %v", reply, err)
		}
		if len(f.calls) != 5 {
			t.Errorf("%d exchanges", len(f.calls))
		}
	}
}

// In a cluster one node has to reply, no matter which. Each is asked with a key of one of its slots.
func TestPingOfACluster(t *testing.T) {
	t.Parallel()
	for alive, want := range map[string]error{"c": nil, "none": errSilent} {
		hung := make(chan struct{})
		f := clusterFake{&fake{do: func(x exchange) ([]any, error) {
			if x.key == alive {
				return []any{"PONG"}, nil
			}
			if x.key == "d" && alive != "none" {
				<-hung
			}
			return nil, errSilent
		}}}
		if err := NewRunner(f, time.Minute).Ping(t.Context(), "a", "b", "c", "d"); !errors.Is(err, want) {
			t.Errorf("the node that replies: %s; Ping: %v", alive, err)
		}
		close(hung)
	}
}
