package locker

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// Options.Timeout bounds each round trip of a lock that New makes, even if its client would wait longer for a
// Redis that hangs.
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

// An Algorithm may return only the error of its context, which Timeout, Wait or the caller has ended. Whatever
// its last Take may have done is undone.
func TestTimeoutOfAnAlgorithm(t *testing.T) {
	const ms = time.Millisecond
	for name, tt := range map[string]struct {
		options Options
		before  int           // Takes that find the lock held
		patient time.Duration // until the context of the caller ends
		took    time.Duration
		want    error
	}{
		"Timeout": {Options{Timeout: s}, 0, time.Hour, s, ErrUnavailable},
		"Wait":    {Options{Timeout: s, Wait: 1100 * ms, Backoff: Backoff{600 * ms, 600 * ms}}, 1, time.Hour, 1225 * ms, ErrTimeout},
		"context": {Options{Timeout: s}, 0, s / 2, s / 2, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) { endsInTime(t, tt.options, tt.before, tt.patient, tt.took, tt.want) })
		})
	}
}

func endsInTime(t *testing.T, o Options, before int, patient, took time.Duration, want error) {
	t.Helper()
	f := &fake{}
	f.instead = func(ctx context.Context, method string, n int, do func() error) error {
		if method == "Take" && n == before+1 {
			time.AfterFunc(3*s, func() { _ = do() })
			<-ctx.Done()
			return ctx.Err()
		}
		return do()
	}
	if before > 0 {
		f.Put("k", "another", 2*s)
	}
	o.Lease, o.MaxHold = time.Hour, time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	locks, begin := New(f, o), time.Now()
	if _, err := locks.Lock(ctx, "k"); !errors.Is(err, want) || !errors.Is(err, ErrUnavailable) {
		t.Errorf("Lock: %v", err)
	}
	wantTook(t, "Lock", begin, took)
	redistest.Elapse(30 * s)
	if holder := f.Holder("k"); holder != "" {
		t.Errorf("%q has the lock", holder)
	}
}
