package scripting

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// watch makes the runner note each exchange: the command, how many there are, the status, and the error.
func watch(r *Runner) (all *[]string) {
	all = new([]string)
	r.Observe(func(_ context.Context, x Exchange) {
		failure := ""
		switch {
		case errors.Is(x.Err, transport.ErrRefused):
			failure = " refused"
			if x.Sent > 0 {
				failure += ", though sent"
			}
		case x.Err != nil:
			failure = " maybe done"
		}
		*all = append(*all, fmt.Sprintf("%s×%d %s%s", x.Command, x.Commands, x.Status, failure))
	})
	return all
}

// Each try is one exchange. That includes a try that is repeated because the connection broke, Redis did not know
// the script, or Redis deferred it.
func TestEachTryIsObserved(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		client transport.Client
		want   []string
	}{
		"once":               {knows(nil), []string{"EVALSHA×1 "}},
		"an unknown script":  {&fake{}, []string{"EVALSHA×1 NOSCRIPT", "EVAL×1 "}},
		"a connection broke": {knows(meets(errBroken)), []string{"EVALSHA×1  maybe done", "EVALSHA×1 "}},
		"deferred":           {knows(meets(refusal(tryAgain))), []string{"EVALSHA×1 TRYAGAIN", "EVALSHA×1 "}},
		"no node":            {clusterFake{knows(meets(errRefused))}, []string{"EVALSHA×1  refused", "EVALSHA×1 "}},
		"full":               {knows(meets(refusal("OOM command not allowed"))), []string{"EVALSHA×1 OOM"}},
		"without a kind":     {knows(meets(refusal("go away"))), []string{"EVALSHA×1 ERR"}},
		"no connection":      {knows(meets(notConnected("WRONGPASS invalid username-password pair"))), []string{"EVALSHA×1 WRONGPASS refused"}},
		"a script that runs": {knows(meets(notConnected("BUSY Redis is busy running a script."))), []string{"EVALSHA×1 BUSY refused"}}, // SELECT is refused
		"no such database":   {knows(meets(notConnected("DB index is out of range"))), []string{"EVALSHA×1  refused"}},
		"a panic":            {knows(func(exchange) ([]any, error) { panic("no client") }), []string{"EVALSHA×1  maybe done"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := NewRunner(tt.client, time.Minute)
			got := watch(r)
			_, _ = r.Run(t.Context(), echo, Keys{"k"}, "word")
			if !slices.Equal(*got, tt.want) {
				t.Errorf("%s: %q, want %q", name, *got, tt.want)
			}
		})
	}
}

// notConnected is the error of a client that Redis has not let in.
func notConnected(why string) error {
	return fmt.Errorf("%w: no connection: %w", transport.ErrRefused, fmt.Errorf("client: %w", errors.New(why)))
}

// Plain commands are observed as one exchange, under the name of the first, with the bytes that were sent and
// received.
func TestPlainCommandsAreObserved(t *testing.T) {
	t.Parallel()
	r := NewRunner(knows(func(exchange) ([]any, error) {
		return []any{"OK", int64(-12), []any{[]byte("abc"), nil, "de"}}, nil
	}), time.Minute)
	var got Exchange
	r.Observe(func(_ context.Context, x Exchange) { got = x })
	_, err := r.RoundTripPlain(t.Context(), "k", transport.Command{"SET", "k", []byte("value")}, transport.Command{"PTTL", "k"}, transport.Command{"MGET", 17, int64(1234)})
	if err != nil {
		t.Fatal(err)
	}
	sent, received := len("SETkvaluePTTLkMGET171234"), len("OK-12abcde")
	if got.Command != "SET" || got.Commands != 3 || got.Script != "" || got.Sent != sent || got.Received != received {
		t.Errorf("%+v, want %d bytes sent and %d received", got, sent, received)
	}
}

// An exchange is observed even if the client ends the goroutine.
func TestAnExchangeThatExitsIsObserved(t *testing.T) {
	t.Parallel()
	r := NewRunner(knows(func(exchange) ([]any, error) {
		runtime.Goexit()
		return nil, nil
	}), time.Minute)
	var got []Exchange
	r.Observe(func(_ context.Context, x Exchange) { got = append(got, x) })
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = r.Run(t.Context(), echo, nil, "word")
	}()
	<-done
	if len(got) != 1 || !errors.Is(got[0].Err, ErrExited) {
		t.Errorf("%+v", got)
	}
}

// If the client knows which server replied, the exchange says so.
func TestTheServerIsObserved(t *testing.T) {
	t.Parallel()
	r := NewRunner(routed{knows(nil), transport.Route{Node: "node-2:6379", Database: "3", Moved: 1, Asked: 2}}, time.Minute)
	var got Exchange
	r.Observe(func(_ context.Context, x Exchange) { got = x })
	if _, err := r.Run(t.Context(), echo, nil, "word"); err != nil {
		t.Fatal(err)
	}
	if got.Node != "node-2:6379" || got.Database != "3" || got.Moved != 1 || got.Asked != 2 {
		t.Errorf("%+v", got)
	}
}

// routed is a RoutedClient.
type routed struct {
	*fake
	route transport.Route
}

func (r routed) DoRouted(ctx context.Context, key string, commands ...transport.Command) ([]any, transport.Route, error) {
	replies, err := r.Do(ctx, key, commands...)
	return replies, r.route, err
}

// The size of a number is that of its text.
func TestDigits(t *testing.T) {
	t.Parallel()
	numbers := []int64{0, math.MaxInt64, math.MinInt64}
	for power := int64(1); power > 0 && power <= math.MaxInt64/10; power *= 10 {
		numbers = append(numbers, power-1, power, 10*power-1, 10*power)
	}
	for bit := range 63 {
		numbers = append(numbers, 1<<bit-1, 1<<bit)
	}
	for _, n := range numbers {
		for _, n := range []int64{n, -n} {
			if got, want := digits(n), len(strconv.FormatInt(n, 10)); got != want {
				t.Errorf("%d has %d digits, want %d", n, got, want)
			}
		}
	}
}
