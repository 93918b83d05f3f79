package locker_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/a2139e8d/latchkey/locker"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"
)

// New makes a lock on any client, such as that of package goredisstore.
func ExampleNew() {
	mini, err := miniredis.Run() // a Redis for this example; a real program dials its own
	if err != nil {
		log.Fatal(err)
	}
	defer mini.Close()
	pool := &redis.Pool{Dial: func() (redis.Conn, error) { return redis.Dial("tcp", mini.Addr()) }}

	client := transport.NewRedigo(pool, 10*time.Second)
	defer client.Close()
	locks := locker.New(locker.SpinAlgorithm(client), locker.Options{})

	ctx := context.Background()
	lease, err := locks.Lock(ctx, "job:report")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("locked")
	fmt.Println(lease.Unlock(ctx))
	// Output:
	// locked
	// <nil>
}
