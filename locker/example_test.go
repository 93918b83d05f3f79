package locker_test

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/a2139e8d/latchkey/locker"
	"github.com/gomodule/redigo/redis"
)

// A report takes most of an hour, and must not be made twice at a time, nor twice
// within a day, however many servers have it in their schedule.
func Example() {
	pool := &redis.Pool{
		MaxIdle: 2,
		DialContext: func(ctx context.Context) (redis.Conn, error) {
			return redis.DialContext(ctx, "tcp", "localhost:6379")
		},
	}
	defer pool.Close()

	jobs := locker.NewSpin(pool, locker.Options{
		Lease:   30 * time.Second, // if this process is killed, another may begin after that
		MaxHold: time.Hour,        // after that the job is taken to be stuck
		Wait:    time.Second,      // whoever has the lock will make the report
	})

	err := report(context.Background(), jobs)
	switch {
	case errors.Is(err, locker.ErrTimeout):
		log.Print("another server makes the report, or has made it")
	case err != nil:
		log.Print(err)
	}
}

func report(ctx context.Context, jobs locker.Locker) error {
	lease, err := jobs.Lock(ctx, "job:report")
	if err != nil {
		return err
	}
	defer lease.Unlock(ctx) // for when the work fails: the next one may try at once

	// If the lock is lost, the work must end, because another may have begun.
	working, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	lease.OnLost(cancel)

	if err := work(working); err != nil {
		return errors.Join(err, context.Cause(working)) // the cause may be locker.ErrLost
	}
	return lease.UnlockAfter(ctx, 23*time.Hour)
}

// work stands for anything that ends when its context does.
func work(ctx context.Context) error { return ctx.Err() }
