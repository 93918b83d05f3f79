package locker_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/a2139e8d/latchkey/locker"
	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"
)

// Three independent servers keep the lock, so it survives that one of them dies.
func ExampleNewRedlock() {
	var servers []*miniredis.Miniredis // for this example; a real program dials its own
	var pools []*redis.Pool
	for range 3 {
		mini, err := miniredis.Run()
		if err != nil {
			log.Fatal(err)
		}
		defer mini.Close()
		servers = append(servers, mini)
		pools = append(pools, &redis.Pool{Dial: func() (redis.Conn, error) { return redis.Dial("tcp", mini.Addr()) }})
	}
	locks := locker.NewRedlock(pools, locker.Options{Lease: 10 * time.Minute})
	servers[1].Close()

	ctx := context.Background()
	lease, err := locks.Lock(ctx, "job:report")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("locked for about", lease.Validity().Round(time.Minute))
	fmt.Println(lease.Unlock(ctx))
	// Output:
	// locked for about 10m0s
	// <nil>
}
