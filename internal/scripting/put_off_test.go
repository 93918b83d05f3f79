package scripting

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// A clusterFake is a fake that knows clusters.
type clusterFake struct{ *fake }

func (clusterFake) IsCluster() bool { return true }
func (clusterFake) SubscribeShard(context.Context, string) (transport.Subscription, error) {
	return nil, errRefused
}

const tryAgain = "TRYAGAIN Multiple keys request during rehashing of slot"

// putsOff returns a fake that puts off with these words the last command of its first n exchanges.
func putsOff(words string, n int) *fake {
	return knows(func(call int, _ []transport.Command, next func() ([]any, error)) ([]any, error) {
		if call > n {
			return next()
		}
		replies, err := next()
		replies[len(replies)-1] = errors.New(words)
		return replies, err
	})
}

// What is put off is done when its time has come, as if it had been sent only then: the number
// of the call is not that of a repetition.
func TestPutOff(t *testing.T) {
	t.Parallel()
	for words, everywhere := range map[string]bool{
		tryAgain:                               true,
		"CLUSTERDOWN The cluster is down":      true,
		"LOADING Redis is loading the dataset": true,
		"MASTERDOWN Link with MASTER is down":  true,
		"MOVED 3999 127.0.0.1:6381":            false,
		"ASK 3999 127.0.0.1:6381":              false,
		"READONLY You can't write":             false,
		"OOM command not allowed":              false,
	} {
		for _, cluster := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				f := putsOff(words, 9)
				var client transport.Client = f
				if cluster {
					client = clusterFake{f}
				}
				begun := time.Now()
				reply, err := NewRunner(client, time.Second).Run(t.Context(), echo, Keys{"key"}, "once")
				took := time.Since(begun)
				if want := everywhere || cluster && words[0] != 'O'; !want {
					if !errors.Is(err, transport.ErrRefused) || Unanswered(err) || took > 0 {
						t.Errorf("%s, %v: %v after %v", words, cluster, err, took)
					}
					return
				}
				if text, _ := reply.TextAt(0); err != nil || text != "once" || len(f.calls) != 10 {
					t.Fatalf("%s, %v: %q, %v after %d exchanges", words, cluster, text, err, len(f.calls))
				}
				if least := 159 * time.Millisecond; took < least || took > 2*least { // 1+2+4+8+16+4*32
					t.Errorf("%s: it took %v", words, took)
				}
				for i := range f.calls {
					if number := f.number(i + 1); number < 0 {
						t.Errorf("%s: number %d is that of a repetition", words, number)
					}
				}
			})
		}
	}
}

// What was put off for the whole time of an exchange was refused, and has had its time.
func TestPutOffForTooLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := putsOff(tryAgain, 1000)
		begun := time.Now()
		_, err := NewRunner(f, time.Second).Run(t.Context(), echo, Keys{"key"})
		if took := time.Since(begun); took != time.Second || !errors.Is(err, transport.ErrRefused) || !Unanswered(err) {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// A caller that goes away does not wait, and its error does not say that Redis was asked for long.
func TestPutOffAndCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		begun := time.Now()
		_, err := NewRunner(putsOff(tryAgain, 1000), time.Second).Run(ctx, echo, Keys{"key"})
		if took := time.Since(begun); took != 20*time.Millisecond || !errors.Is(err, transport.ErrRefused) || Unanswered(err) {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// A repetition stays one when it is put off: what it repeats may have been done.
func TestRepetitionIsPutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := knows(func(n int, _ []transport.Command, next func() ([]any, error)) ([]any, error) {
			switch n {
			case 1:
				return nil, errBroken
			case 2:
				return []any{errors.New(tryAgain)}, nil
			}
			return next()
		})
		if _, err := NewRunner(f, time.Second).Run(t.Context(), echo, Keys{"key"}); err != nil {
			t.Fatal(err)
		}
		for i := range f.calls {
			if number := f.number(i + 1); number < 0 != (i > 0) {
				t.Errorf("exchange %d has the number %d", i+1, number)
			}
		}
	})
}

// Commands without a script are sent again all together. If the time ends, those that were done
// before leave a trace.
func TestPlainIsPutOff(t *testing.T) {
	t.Parallel()
	set, get := transport.Command{"SET", "lock"}, transport.Command{"MGET", "lock", "record"}
	for name, tt := range map[string]struct {
		times     int
		set       any
		ambiguous bool
	}{
		"for a while":               {times: 3, set: "OK"},
		"for too long":              {times: 1000, set: errors.New(tryAgain)},
		"for too long, but for SET": {times: 1000, set: "OK", ambiguous: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{do: func(n int, commands []transport.Command, _ func() ([]any, error)) ([]any, error) {
				if len(commands) != 2 {
					t.Errorf("%s: %v is sent alone", name, commands)
				}
				if n > tt.times {
					return []any{nil, "values"}, nil
				}
				return []any{tt.set, errors.New(tryAgain)}, nil
			}}
			replies, err := NewRunner(f, time.Second).Plain(t.Context(), "lock", set, get)
			switch {
			case tt.times < 1000:
				if err != nil || len(replies) != 2 || replies[1] != "values" {
					t.Errorf("%s: %v, %v", name, replies, err)
				}
			case Ambiguous(err) != tt.ambiguous || !Unanswered(err):
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// A connection that breaks later does not undo what was done before.
func TestPlainIsPutOffAndBreaks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{do: func(n int, _ []transport.Command, _ func() ([]any, error)) ([]any, error) {
			if n == 1 {
				return []any{"OK", errors.New(tryAgain)}, nil
			}
			return nil, errRefused
		}}
		_, err := NewRunner(f, time.Second).Plain(t.Context(), "lock", transport.Command{"SET"}, transport.Command{"MGET"})
		if !Ambiguous(err) || !errors.Is(err, errNobody) {
			t.Error(err)
		}
	})
}

// While no node of a cluster takes the commands, they wait for the one that will have the slot. A
// single server is either there or not, and a client that was closed does not come back.
func TestNoNode(t *testing.T) {
	t.Parallel()
	closed := fmt.Errorf("%w: %w", transport.ErrRefused, transport.ErrClosed)
	for name, tt := range map[string]struct {
		client func(*fake) transport.Client
		err    error
		waits  bool
	}{
		"a cluster":                   {func(f *fake) transport.Client { return clusterFake{f} }, errRefused, true},
		"one server":                  {func(f *fake) transport.Client { return f }, errRefused, false},
		"a cluster, client is closed": {func(f *fake) transport.Client { return clusterFake{f} }, closed, false},
		"a cluster, connection broke": {func(f *fake) transport.Client { return clusterFake{f} }, errSilent, false},
	} {
		for _, plain := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				f := knows(func(n int, _ []transport.Command, next func() ([]any, error)) ([]any, error) {
					if n > 5 {
						return next()
					}
					return nil, tt.err
				})
				r, err := NewRunner(tt.client(f), time.Second), error(nil)
				if plain {
					_, err = r.Plain(t.Context(), "key", transport.Command{"GET", "key"})
				} else {
					_, err = r.Run(t.Context(), echo, Keys{"key"}, "argument")
				}
				if tt.waits && err != nil || !tt.waits && (!errors.Is(err, tt.err) || len(f.calls) != 1) {
					t.Errorf("%s, plain %v: %v after %d exchanges", name, plain, err, len(f.calls))
				}
				for i := range f.calls {
					if !plain && f.number(i+1) < 0 {
						t.Errorf("%s: exchange %d is a repetition", name, i+1)
					}
				}
			})
		}
	}
}

// If there is none for as long as an exchange may take, nothing was sent.
func TestNoNodeForTooLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := knows(func(int, []transport.Command, func() ([]any, error)) ([]any, error) { return nil, errRefused })
		begun := time.Now()
		_, err := NewRunner(clusterFake{f}, time.Second).Run(t.Context(), echo, Keys{"key"}, "argument")
		if took := time.Since(begun); took != time.Second || !errors.Is(err, errNobody) || !errors.Is(err, transport.ErrRefused) || !Unanswered(err) {
			t.Errorf("%v after %v", err, took)
		}
	})
}
