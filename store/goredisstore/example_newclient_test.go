package goredisstore_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/a2139e8d/latchkey/locker"
	"github.com/a2139e8d/latchkey/store/goredisstore"
	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// A lock on the go-redis client that the program has already.
func ExampleNewClient() {
	mini, err := miniredis.Run() // a Redis for this example
	if err != nil {
		log.Fatal(err)
	}
	defer mini.Close()
	own := redis.NewClient(&redis.Options{Addr: mini.Addr(), ContextTimeoutEnabled: true})
	defer own.Close()

	const timeout = 10 * time.Second
	client, err := goredisstore.NewClient(own, timeout)
	if err != nil {
		log.Fatal(err) // an option of the client breaks a promise
	}
	locks := locker.New(locker.SpinAlgorithm(client), locker.Options{Timeout: timeout})
	lease, err := locks.Lock(context.Background(), "job:report")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("locked")
	fmt.Println(lease.Unlock(context.Background()))
	// Output:
	// locked
	// <nil>
}
