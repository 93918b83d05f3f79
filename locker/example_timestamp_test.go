package locker_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strconv"
	"time"

	"github.com/a2139e8d/latchkey/locker"
	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"
)

// A program in PHP takes the same lock by SETNX and GETSET, and keeps in the key when its lock expires.
func ExampleNewTimestamp() {
	mini, err := miniredis.Run() // a Redis for this example; a real program dials its own
	if err != nil {
		log.Fatal(err)
	}
	defer mini.Close()
	pool := &redis.Pool{Dial: func() (redis.Conn, error) { return redis.Dial("tcp", mini.Addr()) }}

	imports := locker.NewTimestamp(pool, locker.Options{Wait: locker.NoWait, Timeout: 10 * time.Second})
	ctx := context.Background()

	mini.Set("import.lock", strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10)) // PHP has it for an hour
	_, err = imports.Lock(ctx, "import.lock")
	fmt.Println("PHP has the lock:", errors.Is(err, locker.ErrTimeout))

	mini.Set("import.lock", strconv.FormatInt(time.Now().Add(-time.Second).UnixMilli(), 10)) // PHP has died
	lease, err := imports.Lock(ctx, "import.lock")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("Go has the lock")
	fmt.Println(lease.Unlock(ctx))
	// Output:
	// PHP has the lock: true
	// Go has the lock
	// <nil>
}
