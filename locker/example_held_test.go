package locker_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/a2139e8d/latchkey/locker"
	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"
)

// Whoever finds a lock held learns who holds it, and for how long already.
func ExampleHeldError() {
	mini, err := miniredis.Run() // a Redis for this example; a real program dials its own
	if err != nil {
		log.Fatal(err)
	}
	defer mini.Close()
	pool := &redis.Pool{Dial: func() (redis.Conn, error) { return redis.Dial("tcp", mini.Addr()) }}

	locks := locker.NewSpin(pool, locker.Options{Wait: locker.NoWait, Timeout: 10 * time.Second})
	ctx := context.Background()
	lease, err := locks.Lock(locker.WithLabel(ctx, "daily report"), "job:report")
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Unlock(ctx)

	_, err = locks.Lock(ctx, "job:report")
	if held, ok := errors.AsType[*locker.HeldError](err); ok {
		fmt.Println(held.Owner.Label, "has it, since", held.For.Round(time.Minute))
		fmt.Println("in this process:", held.Owner.PID == os.Getpid())
	}
	// Output:
	// daily report has it, since 0s
	// in this process: true
}
