package locker_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker"
)

// lateContext is a context whose timer is late, as it may be on a busy machine: its
// deadline is over a little before it ends.
type lateContext struct {
	context.Context
	deadline time.Time
}

func (c lateContext) Deadline() (time.Time, bool) { return c.deadline, true }

func withLateTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	deadline := time.Now().Add(d)
	ctx, cancel := context.WithDeadlineCause(ctx, deadline.Add(20*time.Millisecond), cause)
	return lateContext{ctx, deadline}, cancel
}

// The deadline of whoever is first in line is no verdict on Redis. It gets the cause of
// its own end, and those behind it, who have time, get the lock when Redis answers again.
func TestADeadlineIsNoVerdictOnRedis(t *testing.T) {
	t.Parallel()
	const (
		silence = 400 * time.Millisecond
		hurry   = 60 * time.Millisecond
		patient = 10
	)
	r := redistest.Real(t)
	spin := locker.NewSpin(r.Pool(t, 1), locker.Options{Wait: 10 * time.Second, Timeout: 2 * time.Second})
	lock := func(key string) {
		l, err := spin.Lock(t.Context(), key)
		if err != nil {
			t.Errorf("one with all the time in the world: %v", err)
			return
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	}

	r.Pause(t)
	var all sync.WaitGroup
	defer all.Wait()
	noTime := errors.New("this caller has no time")
	first, entering := make(chan error, 1), make(chan struct{})
	go func() {
		ctx, cancel := withLateTimeout(t.Context(), hurry, noTime)
		defer cancel()
		close(entering) // the line: nobody is in it
		_, err := spin.Lock(ctx, "lock")
		first <- err
	}()
	<-entering
	for range patient {
		all.Go(func() { lock("lock") })
	}
	time.Sleep(silence)
	r.Resume(t)
	if err := <-first; !errors.Is(err, noTime) {
		t.Errorf("the first in line: %v, want the cause of its context's end", err)
	}
}
