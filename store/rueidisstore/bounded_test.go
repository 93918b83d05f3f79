package rueidisstore

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// More round trips are under way than the queue of a connection has room for, and Redis is silent. Each still
// ends by the timeout, or by its own deadline. After that Redis is found again.
func TestFullQueue(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	o := at(s)
	o.RingScaleEachConn = 3
	o.ConnWriteTimeout = 10 * time.Second // until then the connection is not found dead
	const limit = 500 * time.Millisecond
	c := opened(t, o, limit)
	redistest.Eventually(t, "Redis is found", func() bool {
		_, err := c.Do(t.Context(), "k", transport.Command{"PING"})
		return err == nil
	})
	for range 100 { // round trips with their own deadline leave no trace
		ctx, cancel := context.WithTimeout(t.Context(), limit*9/10)
		_, _ = c.Do(ctx, "k", transport.Command{"PING"})
		cancel()
	}
	s.Pause(t)
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			begun := time.Now()
			ctx, want := t.Context(), limit
			if i%2 == 0 {
				want = limit / 5
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, want)
				defer cancel()
			}
			_, err := c.Do(ctx, "k", transport.Command{"INCR", "k"})
			if !errors.Is(err, transport.ErrUnavailable) || errors.Is(err, transport.ErrRefused) || !timeout(err) {
				t.Errorf("%v", err)
			}
			if took := time.Since(begun); took < want*9/10 || took > want+2*time.Second {
				t.Errorf("the round trip took %v, want %v", took, want)
			}
		})
	}
	all.Wait()
	s.Resume(t)
	redistest.Eventually(t, "Redis is found again", func() bool {
		_, err := c.Do(t.Context(), "k", transport.Command{"PING"})
		return err == nil
	})
}

// A dead connection is noticed soon after the first round trip has used up its time. A later round trip fails
// early enough to be repeated: it has time left, and its error does not look like a timeout.
func TestDeadConnection(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	p := redistest.NewProxy(t, s)
	const limit = 4 * time.Second
	c := opened(t, redis2(p.Addr), limit)
	do(t, c, "", transport.Command{"PING", "first"})
	p.Inject(func(cmd redistest.Command) redistest.Fault {
		if cmd.Name == "INCR" || cmd.Name == "PING" {
			return redistest.Hang
		}
		return redistest.Pass
	})
	var all sync.WaitGroup
	for _, wait := range []time.Duration{0, limit / 2} {
		all.Go(func() {
			time.Sleep(wait) // later round trips have less of the time
			_, err := c.Do(t.Context(), "k", transport.Command{"INCR", "k"})
			if !errors.Is(err, transport.ErrUnavailable) || errors.Is(err, transport.ErrRefused) || timeout(err) != (wait == 0) {
				t.Errorf("after %v: %v", wait, err)
			}
		})
	}
	all.Wait()
	p.Inject(nil)
	if got := do(t, c, "k", transport.Command{"GET", "k"}); got[0] == nil {
		t.Error("nothing was executed")
	}
}

// An error of a connection does not outlast it: after Reset there is another connection.
func TestReset(t *testing.T) {
	t.Parallel()
	c := opened(t, at(redistest.Real(t)), patient.Timeout)
	before := do(t, c, "", transport.Command{"CLIENT", "ID"})[0]
	c.Reset()
	redistest.Eventually(t, "there is another connection", func() bool {
		replies, err := c.Do(t.Context(), "", transport.Command{"CLIENT", "ID"})
		return err == nil && replies[0] != before
	})
}
