package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker"
)

// A lock from elsewhere may have any error when the wait is over, even that of
// an exchange with Redis which the end of the wait broke off. It was the wait.
func TestWaitError(t *testing.T) {
	t.Parallel()
	gone := errors.New("the client went away")
	client, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	for name, tt := range map[string]struct {
		waiting context.Context
		err     error
		want    []error
	}{
		"over":        {wait(t, t.Context(), 0), ErrUnavailable, []error{ErrTimeout, ErrUnavailable}},
		"over by now": {lateTimer{wait(t, t.Context(), time.Millisecond)}, ErrUnavailable, []error{ErrTimeout}},
		"client gone": {wait(t, client, time.Hour), context.Canceled, []error{gone}},
	} {
		err := waitError(tt.waiting, tt.err)
		for _, want := range tt.want {
			wantError(t, name, err, want)
		}
	}
	if err := waitError(wait(t, t.Context(), 0), ErrTimeout); err != ErrTimeout {
		t.Errorf("an error that is the cause already became %v", err)
	}
	if err := waitError(wait(t, t.Context(), time.Hour), ErrUnavailable); err != ErrUnavailable {
		t.Errorf("an error while time is left became %v", err)
	}
}

func wait(t *testing.T, ctx context.Context, d time.Duration) context.Context {
	waiting, cancel := context.WithTimeoutCause(ctx, d, ErrTimeout)
	t.Cleanup(cancel)
	return waiting
}

// stuck is somebody's own lock, which is never free and knows nothing of causes.
type stuck struct{}

func (stuck) Lock(ctx context.Context, key string) (*locker.Lease, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestTakeWithStuckLocker(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, s *redistest.Server) {
		o := patient
		o.Locker = stuck{}
		st := New(s.Pool(t, 1), o)
		create(t, st, "1")
		_, err := st.Take(t.Context(), theID, Terms{LockWait: time.Millisecond})
		wantError(t, "Take", err, ErrTimeout)
	})
}

// A lateTimer is a context whose deadline has passed, but whose timer has not
// noticed yet.
type lateTimer struct{ context.Context }

func (lateTimer) Deadline() (time.Time, bool) { return time.Now().Add(-time.Second), true }
