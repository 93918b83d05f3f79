package store_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/a2139e8d/latchkey/store"
	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"
)

// A program that has a pool of redigo already.
func ExampleNew() {
	mini, err := miniredis.Run() // a Redis for this example
	if err != nil {
		log.Fatal(err)
	}
	defer mini.Close()
	pool := &redis.Pool{
		MaxIdle: 4,
		DialContext: func(ctx context.Context) (redis.Conn, error) {
			return redis.DialContext(ctx, "tcp", mini.Addr(), redis.DialConnectTimeout(10*time.Second))
		},
	}
	defer pool.Close()

	st := store.New(pool, store.Options{Prefix: "shop:"})
	defer st.Close() // leaves the pool alone
	fmt.Println(st.Ping(context.Background()))
	// Output:
	// <nil>
}
