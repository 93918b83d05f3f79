package locker

import (
	"context"
	"errors"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// A scripted client replies to each command, which is a script.
type scripted struct {
	transport.Client
	reply func(call any) any // gets the number of the call
}

func (c scripted) Do(_ context.Context, _ string, commands ...transport.Command) (replies []any, _ error) {
	for _, command := range commands {
		keys := command[2].(int)
		replies = append(replies, c.reply(command[3+keys]))
	}
	return replies, nil
}

// While a replica takes over, Redis refuses writes. A lock tries again for as long as Options.Timeout says.
func TestTimeoutBoundsWhatIsTriedAgain(t *testing.T) {
	c := scripted{reply: func(any) any { return errors.New("READONLY You can't write against a read only replica.") }}
	for name, a := range map[string]Algorithm{"Spin": SpinAlgorithm(c), "Timestamp": TimestampAlgorithm(c)} {
		for _, timeout := range []time.Duration{s / 5, 5 * s} {
			t.Run(name+" "+timeout.String(), bubble(func(t *testing.T) {
				begin := time.Now()
				if _, err := New(a, Options{Timeout: timeout, Wait: time.Minute}).Lock(t.Context(), "k"); !errors.Is(err, ErrUnavailable) {
					t.Errorf("Lock: %v", err)
				}
				if took := time.Since(begin); took < timeout*9/10 || took > timeout {
					t.Errorf("Lock has tried for %v", took)
				}
			}))
		}
	}
}

// Another program has taken the lock, for longer than a time.Duration can say. Whoever waits for the end of the lease
// gives up at once.
func TestALeaseOfCenturies(t *testing.T) {
	for _, ms := range []int64{math.MaxInt64 / 1_000_000, 1e13, 2e13, 1e15, math.MaxInt64} {
		c := scripted{reply: func(call any) any { return []any{int64(0), "another", ms, call} }}
		t.Run(strconv.FormatInt(ms, 10), bubble(func(t *testing.T) {
			begin := time.Now()
			if _, err := New(SpinAlgorithm(c), Options{Policy: LeaseEnd, Wait: s}).Lock(t.Context(), "k"); !errors.Is(err, ErrTimeout) {
				t.Error(err)
			}
			wantTook(t, "Lock", begin, 0)
		}))
	}
}
