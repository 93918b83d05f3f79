package scripting

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// A deferred command is executed when its time comes, as if it had been sent only then: the call does not get the
// number of a repetition, unless it had that number before.
func TestPutOff(t *testing.T) {
	t.Parallel()
	for words, everywhere := range map[string]bool{
		tryAgain:                               true,
		"CLUSTERDOWN The cluster is down":      true,
		"LOADING Redis is loading the dataset": true,
		"MASTERDOWN Link with MASTER is down":  true,
		"BUSY Redis is busy running a script":  true,
		"MOVED 3999 127.0.0.1:6381":            false,
		"ASK 3999 127.0.0.1:6381":              false,
		"READONLY You can't write":             true,
		"OOM command not allowed":              false,
	} {
		for _, cluster := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				f := knows(meets(slices.Repeat([]any{refusal(words)}, 9)...))
				var client transport.Client = f
				if cluster {
					client = clusterFake{f}
				}
				begun := time.Now()
				_, err := run(t, client)
				took := time.Since(begun)
				if want := everywhere || cluster && words[0] != 'O'; !want {
					if !errors.Is(err, transport.ErrRefused) || TimedOut(err) || took > 0 {
						t.Errorf("%s, %v: %v after %v", words, cluster, err, took)
					}
					return
				}
				if err != nil || len(f.calls) != 10 {
					t.Fatalf("%s, %v: %v after %d exchanges", words, cluster, err, len(f.calls))
				}
				if least := 159 * time.Millisecond; took < least || took > 2*least { // 1+2+4+8+16+4*32
					t.Errorf("%s: the call took %v", words, took)
				}
				f.wantRepetitions(t, never)
			})
		}
	}
	synctest.Test(t, func(t *testing.T) {
		f := knows(meets(errBroken, refusal(tryAgain)))
		wantEcho(t, f, 3)
		f.wantRepetitions(t, 2)
	})
}

// On a cluster, too, a connection that breaks is no deferral: the command may have been done, and the script must learn
// that.
func TestABrokenConnectionIsNotPutOff(t *testing.T) {
	t.Parallel()
	f := knows(meets(errBroken))
	_, err := run(t, clusterFake{f})
	if err != nil || len(f.calls) != 2 {
		t.Errorf("%v after %d exchanges", err, len(f.calls))
	}
	f.wantRepetitions(t, 2)
}

// A command that Redis deferred for the whole time of a round trip, or that found no node, counts as refused and
// as timed out. A caller that goes away does not wait, and its error does not say that Redis timed out.
func TestPutOffForTooLong(t *testing.T) {
	t.Parallel()
	for name, try := range map[string]any{"put off": refusal(tryAgain), "no node": errRefused} {
		for _, leaves := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				want := time.Second
				if leaves {
					want = 20 * time.Millisecond
					time.AfterFunc(want, cancel)
				}
				begun := time.Now()
				_, err := NewRunner(clusterFake{knows(always(try))}, time.Second).Run(ctx, echo, Keys{"key"})
				if took := time.Since(begun); took != want || !errors.Is(err, transport.ErrRefused) || TimedOut(err) == leaves ||
					Moving(err) != (!leaves && name == "put off") {
					t.Errorf("%s, the caller leaves: %v: %v after %v", name, leaves, err, took)
				}
			})
		}
	}
}

// The end of its time cuts the last try of a round trip short. It still counts as deferred. But if Redis fell
// silent long before, the error says that Redis is silent.
func TestPutOffUntilCutShort(t *testing.T) {
	t.Parallel()
	for silence, moving := range map[time.Duration]bool{100 * time.Millisecond: true, 600 * time.Millisecond: false} {
		for _, plain := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				r := NewRunner(knows(func(x exchange) ([]any, error) {
					if time.Since(begun) < time.Second-silence {
						return []any{errors.New(tryAgain)}, nil
					}
					<-x.ctx.Done()
					return nil, errSilent
				}), time.Second)
				var err error
				if plain {
					_, err = r.RoundTripPlain(t.Context(), "key", transport.Command{"GET", "key"})
				} else {
					_, err = r.Run(t.Context(), echo, Keys{"key"})
				}
				if Moving(err) != moving || !TimedOut(err) || !MaybeDone(err) || time.Since(begun) != time.Second {
					t.Errorf("silent for %v, plain %v: %v after %v", silence, plain, err, time.Since(begun))
				}
			})
		}
	}
}

// If Redis defers one of several commands without a script, all are sent again. If the time ends, or the
// connection breaks, commands that were done before make the outcome uncertain. A full Redis may still do the
// commands behind the one that it refuses. Any other refusal is an error.
func TestPlain(t *testing.T) {
	t.Parallel()
	set, get := transport.Command{"SET", "lock"}, transport.Command{"MGET", "lock", "record"}
	none, one := []any{errors.New(tryAgain), errors.New(tryAgain)}, []any{"OK", errors.New(tryAgain)}
	for name, tt := range map[string]struct {
		do         do
		fails      bool
		ambiguous  bool
		unanswered bool
	}{
		"for a while":              {meets(one, one, one), false, false, false},
		"for too long":             {always(none), true, false, true},
		"for too long, except SET": {always(one), true, true, true},
		"and it breaks":            {meets(one, errRefused), true, true, false},
		"Redis is full":            {meets([]any{errors.New("OOM command not allowed"), "values"}), false, false, false},
		"Redis is read-only":       {meets([]any{errors.New("READONLY"), "values"}), true, false, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{do: tt.do}
			replies, err := NewRunner(f, time.Second).RoundTripPlain(t.Context(), "lock", set, get)
			if (err != nil) != tt.fails || err == nil && len(replies) != 2 || MaybeDone(err) != tt.ambiguous || TimedOut(err) != tt.unanswered {
				t.Errorf("%s: %v, %v", name, replies, err)
			}
			for _, commands := range f.calls {
				if len(commands) != 2 {
					t.Errorf("%s: %v is sent alone", name, commands)
				}
			}
		})
	}
}

// While no node of a cluster takes a command, the command waits for the node that will get the slot. A single
// server is either there or not, and a client that was closed does not come back.
func TestNoNode(t *testing.T) {
	t.Parallel()
	closed := fmt.Errorf("%w: %w", transport.ErrRefused, transport.ErrClosed)
	for name, tt := range map[string]struct {
		cluster bool
		err     error
		waits   bool
	}{
		"a cluster":                   {true, errRefused, true},
		"one server":                  {false, errRefused, false},
		"a cluster, client is closed": {true, closed, false},
		"a cluster, connection broke": {true, errSilent, false},
	} {
		for _, plain := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				f := knows(meets(slices.Repeat([]any{tt.err}, 5)...))
				var client transport.Client = f
				if tt.cluster {
					client = clusterFake{f}
				}
				r, err := NewRunner(client, time.Second), error(nil)
				if plain {
					_, err = r.RoundTripPlain(t.Context(), "key", transport.Command{"GET", "key"})
				} else {
					_, err = r.Run(t.Context(), echo, Keys{"key"}, "argument")
					f.wantRepetitions(t, never)
				}
				if tt.waits && err != nil || !tt.waits && (!errors.Is(err, tt.err) || len(f.calls) != 1) {
					t.Errorf("%s, plain %v: %v after %d exchanges", name, plain, err, len(f.calls))
				}
			})
		}
	}
}
