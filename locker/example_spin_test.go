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

// Two processes want to make the same report. The second one does not wait: the first one makes it.
func ExampleNewSpin() {
	mini, err := miniredis.Run() // a Redis for this example; a real program dials its own
	if err != nil {
		log.Fatal(err)
	}
	defer mini.Close()
	pool := &redis.Pool{Dial: func() (redis.Conn, error) { return redis.Dial("tcp", mini.Addr()) }}

	options := locker.Options{Wait: locker.NoWait, Timeout: 10 * time.Second}
	web1, web2 := locker.NewSpin(pool, options), locker.NewSpin(pool, options) // in two processes
	ctx := context.Background()

	lease, err := web1.Lock(ctx, "job:report")
	if err != nil {
		log.Fatal(err)
	}
	_, err = web2.Lock(ctx, "job:report")
	fmt.Println("the second one has to leave it:", errors.Is(err, locker.ErrTimeout))

	if err := lease.Unlock(ctx); err != nil {
		log.Fatal(err) // such as locker.ErrLost: another may have worked at the same time
	}
	lease, err = web2.Lock(ctx, "job:report")
	fmt.Println("now the second one has the lock:", err == nil)
	fmt.Println(lease.Unlock(ctx))
	// Output:
	// the second one has to leave it: true
	// now the second one has the lock: true
	// <nil>
}
