package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/a2139e8d/latchkey/locker"
)

// patience is how long a request waits for the lock before it gives up.
const patience = 5 * time.Second

// A way is how requests wait for the lock.
type way struct {
	name string
	// pause is how long to sleep after a try, counted from 0, where each request
	// waits for itself, as a PHP process does. nil: as the package does it.
	pause func(try int) time.Duration
	// lockers is how many lockers the requests share where pause is nil. Each
	// locker stands for one process, with a queue.
	lockers int
}

func ways() []way {
	return []way{
		{name: "no sleep", pause: fixed(0)},
		{name: "1 ms", pause: fixed(time.Millisecond)},
		{name: "10 ms", pause: fixed(10 * time.Millisecond)},
		{name: "200 ms", pause: fixed(200 * time.Millisecond)},
		{name: "1–16 ms, jittered", pause: jittered(locker.Backoff{Min: time.Millisecond, Max: 16 * time.Millisecond})},
		{name: "default, 4 processes", lockers: 4},
		{name: "default, 1 process", lockers: 1},
	}
}

// fixed is the same pause each time: the sleep of a program that was not written
// with care. [locker.Backoff] has none, since it shortens each pause by chance.
func fixed(d time.Duration) func(int) time.Duration {
	return func(int) time.Duration { return d }
}

func jittered(b locker.Backoff) func(int) time.Duration {
	return func(try int) time.Duration { return b.Delay(try, rand.Float64()) }
}

// A taker takes the lock for one request. A request that gives up gets a
// [locker.ErrTimeout].
type taker func(ctx context.Context, key string) (*locker.Lease, error)

// takers returns the taker of each of n workers. Those of one process share a
// locker.
func (w way) takers(n int, newLocker func(locker.Options) locker.Locker) []taker {
	all := make([]taker, n)
	if w.pause != nil {
		for i := range all {
			all[i] = func(ctx context.Context, key string) (*locker.Lease, error) {
				return takeAlone(ctx, key, newLocker, w.pause)
			}
		}
		return all
	}
	shared := make([]locker.Locker, w.lockers)
	for i := range shared {
		shared[i] = newLocker(locker.Options{Wait: patience})
	}
	for i := range all {
		all[i] = shared[i%len(shared)].Lock
	}
	return all
}

// takeAlone waits with a locker of its own: one try, a pause, and so on. So all
// ways without a queue differ in nothing but the pause.
func takeAlone(ctx context.Context, key string, newLocker func(locker.Options) locker.Locker, pause func(int) time.Duration) (*locker.Lease, error) {
	l := newLocker(locker.Options{Wait: locker.NoWait})
	end := time.Now().Add(patience)
	for try := 0; ; try++ {
		lease, err := l.Lock(ctx, key)
		left := time.Until(end)
		if !errors.Is(err, locker.ErrTimeout) || left <= 0 {
			return lease, err
		}
		time.Sleep(min(pause(try), left))
	}
}
