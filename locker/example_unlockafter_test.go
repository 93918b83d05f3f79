package locker_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/a2139e8d/latchkey/locker"
	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"
)

// A report is made once a day, however many processes have it in their schedule.
func ExampleLease_UnlockAfter() {
	mini, err := miniredis.Run() // a Redis for this example; a real program dials its own
	if err != nil {
		log.Fatal(err)
	}
	defer mini.Close()
	pool := &redis.Pool{Dial: func() (redis.Conn, error) { return redis.Dial("tcp", mini.Addr()) }}

	reports := locker.NewSpin(pool, locker.Options{Wait: locker.NoWait, Timeout: 10 * time.Second})
	report := func(ctx context.Context) error {
		lease, err := reports.Lock(ctx, "job:report")
		if errors.Is(err, locker.ErrTimeout) {
			fmt.Println("another process makes it, or has made it today")
			return nil
		}
		if err != nil {
			return err
		}
		defer lease.Unlock(ctx) // if the work fails; after UnlockAfter it does nothing
		fmt.Println("the report is made")
		return lease.UnlockAfter(ctx, 23*time.Hour)
	}

	for range 2 {
		if err := report(context.Background()); err != nil {
			log.Fatal(err)
		}
	}
	mini.FastForward(24 * time.Hour) // the next day
	if err := report(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// the report is made
	// another process makes it, or has made it today
	// the report is made
}
