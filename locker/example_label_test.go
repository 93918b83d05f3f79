package locker_test

import (
	"context"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/locker"
	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"
)

// The label of a lock is in the errors of those who wait for it. It is stored in Redis, so it holds no secret.
func ExampleWithLabel() {
	mini, err := miniredis.Run() // a Redis for this example; a real program dials its own
	if err != nil {
		log.Fatal(err)
	}
	defer mini.Close()
	pool := &redis.Pool{Dial: func() (redis.Conn, error) { return redis.Dial("tcp", mini.Addr()) }}

	locks := locker.NewSpin(pool, locker.Options{Wait: locker.NoWait, Timeout: 10 * time.Second})
	ctx := locker.WithLabel(context.Background(), "import of account 17")
	lease, err := locks.Lock(ctx, "import:17")
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Unlock(ctx)

	_, err = locks.Lock(context.Background(), "import:17")
	// err is: … lock is held by HOST/PID import of account 17 for 2ms, and its lease ends in 10s
	fmt.Println(strings.Contains(err.Error(), "import of account 17"))
	// Output:
	// true
}
