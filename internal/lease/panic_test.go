package lease

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// A function that was passed to OnLost may panic, or end its goroutine. The others are still called, and the
// process goes on.
func TestOnLostPanics(t *testing.T) {
	var f fake
	withLease(t, &f, Options{}, func(t *testing.T, _ *Locks, l *Lease) {
		ctx, cancel := context.WithCancelCause(t.Context())
		l.OnLost(func(error) { panic("a bug") })
		l.OnLost(func(error) { runtime.Goexit() })
		l.OnLost(cancel)
		lose(l, ErrLost)
		synctest.Wait()
		wantError(t, context.Cause(ctx), ErrLost)
	})
}

// Unlock panics without a context, and leaves the lease as it was: the caller who recovers can still release it, and
// the next caller gets the lock.
func TestUnlockWithoutAContext(t *testing.T) {
	var f fake
	var none context.Context
	withLease(t, &f, Options{}, func(t *testing.T, g *Locks, l *Lease) {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			_ = l.Unlock(none)
		}()
		redistest.Elapse(30 * s)
		if l.Validity() == 0 || isLost(l) {
			t.Error("the lease has ended")
		}
		mustUnlock(t, l)
		mustUnlock(t, lock(t, g, &f, Options{}))
	})
}

// OnLost without a function does nothing, before the loss and after it.
func TestOnLostOfNothing(t *testing.T) {
	var f fake
	withLease(t, &f, Options{}, func(t *testing.T, _ *Locks, l *Lease) {
		l.OnLost(nil)
		lose(l, ErrLost)
		l.OnLost(nil)
	})
}

// A quitter ends the goroutine that subscribes or receives, the first few times.
type quitter struct {
	*wire
	subscribes, receives int
}

type quitting struct {
	transport.Subscription
	*quitter
}

func (q *quitter) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	if q.subscribes--; q.subscribes >= 0 {
		runtime.Goexit()
	}
	s, err := q.wire.Subscribe(ctx, channel)
	return quitting{s, q}, err
}

func (q quitting) Receive() (string, error) {
	if q.receives--; q.receives >= 0 {
		defer q.Close()
		runtime.Goexit()
	}
	return q.Subscription.Receive()
}

// A client that ends the goroutine of a subscription costs only that subscription. Its callers poll, and the next
// subscription is tried in due time.
func TestSubscriberDoesNotReturn(t *testing.T) {
	each(t, map[string]quitter{"Subscribe": {subscribes: 1}, "Receive": {receives: 1}}, func(t *testing.T, q quitter) {
		server := redistest.Memory(t)
		client := transport.NewRedigo(server.Pool(t, 1), patient.Timeout)
		t.Cleanup(func() { client.Close() })
		q.wire = &wire{Client: client}
		n := NewNotifiers(&q, func(context.Context, string, string) error { return nil })
		p := n.placeFor("k")
		synctest.Wait()
		if n.listening("k") {
			t.Error("a place counts as listening, but there is no subscription")
		}
		select {
		case <-p.ready():
		default:
			t.Error("callers wait for this subscription for ever")
		}
		redistest.Elapse(retryTime + time.Millisecond)
		if p.choose(); !p.isNotified() && !n.listening("k") {
			synctest.Wait()
		}
		if !n.listening("k") {
			t.Error("no subscription was tried again")
		}
		p.forget()
		redistest.Elapse(retryTime)
		q.wire.want(t, 0, q.wire.asked)
	})
}
