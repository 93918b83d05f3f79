package scripting

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
)

// maxLanes is how many connections a client uses at once. There are a few, so
// that one that hangs does not stop all. More of them would make the batches
// smaller, and Redis works on one command at a time anyway.
const maxLanes = 4

// Lanes let any number of exchanges share a few connections. To send a message and
// to receive one takes both sides longer than the work that Redis does in between.
// So those who find all lanes in use wait, and whoever gets the next lane takes
// them along: it sends the commands of all together, and receives the replies. As
// long as a lane is free, an exchange has one to itself, and nobody waits.
//
// No goroutine is needed: whoever finds a lane, or is given one, drives it for one
// batch, which begins with its own exchange, and gives it to the next.
type lanes struct {
	pool  *redis.Pool
	doubt atomic.Bool // the last exchange failed

	mu      sync.Mutex  // guards what follows
	driving []time.Time // the deadline of each driver
	waiting []*exchange // first come, first served; nobody while a lane is free
}

// do makes an exchange. ctx bounds the wait for a connection, and the deadline
// all of it.
func (l *lanes) do(ctx context.Context, c command) fate {
	x := l.enter(c)
	switch {
	case x != nil:
	case !c.hurried():
		x := exchange{command: c} // nobody else gets to see it, so it stays on the stack
		return l.drive(ctx, &x)
	default:
		x = newExchange(c)
		l.driveFor(ctx, x)
	}
	return l.wait(ctx, x)
}

// driveFor drives a lane for a caller that has less time than those that it takes along: it
// leaves when its time is over, and they keep their connection. The goroutine ends by the
// deadline of x. If the pool's Dial panics, that is the caller's error.
func (l *lanes) driveFor(ctx context.Context, x *exchange) {
	ctx = context.WithoutCancel(ctx)
	go func() {
		defer func() {
			if r := recover(); r != nil && !x.over {
				x.done(noConnection(fmt.Errorf("a panic: %v", r)))
			}
		}()
		l.drive(ctx, x)
	}()
}

// enter takes a free lane and returns nil, or else the exchange that waits for one.
func (l *lanes) enter(c command) *exchange {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.driving) >= l.most() {
		l.relieve(time.Now())
	}
	if len(l.driving) < l.most() {
		l.driving = append(l.driving, c.deadline)
		return nil
	}
	x := newExchange(c)
	l.waiting = append(l.waiting, x)
	return x
}

// most is how many lanes there are: no more than the pool has connections.
func (l *lanes) most() int {
	if n := l.pool.MaxActive; n > 0 {
		return min(n, maxLanes)
	}
	return maxLanes
}

// relieve passes on the lane of a driver whose deadline is over. It hangs in a
// dial or a write that has no time-out of its own, maybe for ever.
func (l *lanes) relieve(now time.Time) {
	if i := slices.IndexFunc(l.driving, now.After); i >= 0 {
		l.pass(i)
	}
}

// leave passes on the lane of the driver with that deadline, unless it has been
// relieved. Of two with the same deadline it does not matter which one it is.
func (l *lanes) leave(deadline time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.driving, deadline); i >= 0 {
		l.pass(i)
	}
}

// pass gives a lane to whoever has waited longest. It is called with mu held.
func (l *lanes) pass(lane int) {
	if len(l.waiting) == 0 {
		l.driving = slices.Delete(l.driving, lane, lane+1)
		return
	}
	next := l.waiting[0]
	l.waiting = slices.Delete(l.waiting, 0, 1)
	l.driving[lane] = next.deadline
	next.turn <- true
}

// wait waits until x has been taken along, or can drive a lane itself.
func (l *lanes) wait(ctx context.Context, x *exchange) fate {
	timer := time.NewTimer(time.Until(x.patience))
	defer timer.Stop()
	cancelled := ctx.Done()
	for {
		var why error
		select {
		case drives := <-x.turn:
			switch {
			case !drives:
				return x.fate
			case !x.hurried():
				return l.drive(ctx, x)
			}
			l.driveFor(ctx, x)
			continue
		case <-cancelled:
			why, cancelled = ctx.Err(), nil // it may be too late to cancel
		case <-timer.C:
			why = context.DeadlineExceeded
		}
		if f, over := l.giveUp(x, why); over {
			return f
		}
	}
}

// giveUp ends the wait of x, if it can be ended.
func (l *lanes) giveUp(x *exchange, why error) (f fate, over bool) {
	if l.quit(x) {
		return noConnection(why), true
	}
	// It is in a batch, or has got a lane: then its turn was told with mu held.
	select {
	case drives := <-x.turn:
		if !drives {
			return x.fate, true // at the last moment
		}
		l.leave(x.deadline) // too late
		return noConnection(why), true
	default:
		return x.alight(why)
	}
}

// quit takes x out of those who wait, if it is one of them.
func (l *lanes) quit(x *exchange) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting, x)
	if i < 0 {
		return false
	}
	l.waiting = slices.Delete(l.waiting, i, i+1)
	return true
}

// drive makes the exchange x, and those that it takes along.
func (l *lanes) drive(ctx context.Context, x *exchange) fate {
	defer l.leave(x.deadline) // also where the pool's Dial panics
	conn, err := connect(ctx, l.pool, x.deadline, l.doubt.Load())
	if err != nil {
		x.done(noConnection(err))
		return x.fate
	}
	defer conn.Close() // before leave: the next driver finds it in the pool
	if !time.Now().Before(x.deadline) {
		x.done(noConnection(context.DeadlineExceeded))
		return x.fate
	}
	l.board(x)
	run(conn, x)
	if failed := x.fate.err != nil; failed != l.doubt.Load() {
		l.doubt.Store(failed)
	}
	return x.fate
}

// board makes a batch of x and those who have waited longest. It is called when
// there is a connection: until then they may get another lane, or give up.
func (l *lanes) board(x *exchange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, last := 0, x
	for size := x.size(); n < len(l.waiting) && n+1 < maxBatch; n++ {
		next := l.waiting[n]
		if size += next.size(); size > maxBytes {
			break
		}
		last.next, last = next, next
	}
	l.waiting = slices.Delete(l.waiting, 0, n)
}

// noConnection is the fate of a command that was certainly not sent.
func noConnection(err error) fate {
	return fate{err: fmt.Errorf("no connection: %w", err)}
}
