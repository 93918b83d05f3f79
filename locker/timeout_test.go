package locker

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// Options.Timeout bounds each round trip of a lock that New makes, although its client would wait longer for a Redis
// that hangs.
func TestTimeoutBoundsAPatientClient(t *testing.T) {
	for name, algorithm := range map[string]func(transport.Client) Algorithm{
		"Spin": SpinAlgorithm, "Timestamp": TimestampAlgorithm,
	} {
		t.Run(name, theseYears(func(t *testing.T, server *redistest.Server) {
			locks := New(algorithm(transport.NewRedigo(server.Pool(t, 4), 6*s)), Options{Timeout: s, Lease: time.Minute})
			extended := mustLock(t, locks)
			unlocked, err := locks.Lock(t.Context(), "unlocked")
			if err != nil {
				t.Fatal(err)
			}
			server.Pause(t)
			for what, call := range map[string]func() error{
				"Lock":   func() error { _, err := locks.Lock(t.Context(), "another"); return err },
				"Extend": func() error { return extended.Extend(t.Context(), time.Hour) },
				"Unlock": func() error { return unlocked.Unlock(t.Context()) },
			} {
				begin := time.Now()
				if err := call(); !errors.Is(err, ErrUnavailable) {
					t.Errorf("%s: %v", what, err)
				}
				wantTook(t, what, begin, s)
			}
			server.Resume(t)
			_ = extended.Unlock(t.Context())
		}))
	}
}

// An Algorithm may return no more than the error of its context, when Timeout has ended that. What its Take may have
// done is undone.
func TestTimeoutOfAnAlgorithm(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := &fake{}
		f.instead = func(ctx context.Context, method string, n int, do func() error) error {
			if method == "Take" && n == 1 {
				time.AfterFunc(2*s, func() { _ = do() })
				<-ctx.Done()
				return ctx.Err()
			}
			return do()
		}
		locks, begin := New(f, Options{Timeout: s, Lease: time.Hour, MaxHold: time.Hour}), time.Now()
		if _, err := locks.Lock(t.Context(), "k"); !errors.Is(err, ErrUnavailable) {
			t.Errorf("Lock: %v", err)
		}
		wantTook(t, "Lock", begin, s)
		redistest.Elapse(9 * s)
		if holder := f.Holder("k"); holder != "" {
			t.Errorf("%q has the lock", holder)
		}
	})
}
