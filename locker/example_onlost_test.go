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

// The work ends when its lock is lost, since another process may have begun it.
func ExampleLease_OnLost() {
	mini, err := miniredis.Run() // a Redis for this example; a real program dials its own
	if err != nil {
		log.Fatal(err)
	}
	defer mini.Close()
	pool := &redis.Pool{Dial: func() (redis.Conn, error) { return redis.Dial("tcp", mini.Addr()) }}

	options := locker.Options{Timeout: 10 * time.Second}
	here, elsewhere := locker.NewSpin(pool, options), locker.NewSpin(pool, options) // two processes
	lease, err := here.Lock(context.Background(), "job:report")
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	lease.OnLost(cancel)

	mini.FastForward(time.Hour) // the lock expires, as if this process had been paused
	other, err := elsewhere.Lock(context.Background(), "job:report")
	if err != nil {
		log.Fatal(err)
	}
	defer other.Unlock(context.Background())

	// The next renewal tells the holder, or Extend if the holder asks.
	err = lease.Extend(context.Background(), time.Minute)
	fmt.Println("the lock is lost:", errors.Is(err, locker.ErrLost))
	<-ctx.Done()
	fmt.Println("the work must end:", errors.Is(context.Cause(ctx), locker.ErrLost))
	// Output:
	// the lock is lost: true
	// the work must end: true
}
