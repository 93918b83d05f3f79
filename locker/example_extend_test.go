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

// Before a step that takes long and must not be done twice, the holder makes sure that it still has the lock, and
// keeps it for an hour. If the lock has expired meanwhile, the holder learns it here.
func ExampleLease_Extend() {
	mini, err := miniredis.Run() // a Redis for this example; a real program dials its own
	if err != nil {
		log.Fatal(err)
	}
	defer mini.Close()
	pool := &redis.Pool{Dial: func() (redis.Conn, error) { return redis.Dial("tcp", mini.Addr()) }}

	locks := locker.NewSpin(pool, locker.Options{Timeout: 10 * time.Second})
	ctx := context.Background()
	lease, err := locks.Lock(ctx, "job:report")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(lease.Extend(ctx, time.Hour), lease.Validity().Round(time.Minute))

	mini.FastForward(2 * time.Hour) // as if this process had been paused
	fmt.Println("expired:", errors.Is(lease.Extend(ctx, time.Hour), locker.ErrExpired))
	// Output:
	// <nil> 1h0m0s
	// expired: true
}
