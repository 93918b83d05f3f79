package transport_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"
)

// A client sends its commands in one round trip, and returns a reply to each.
func ExampleNewRedigo() {
	mini, err := miniredis.Run() // a Redis for this example; a real program dials its own
	if err != nil {
		log.Fatal(err)
	}
	defer mini.Close()
	pool := &redis.Pool{Dial: func() (redis.Conn, error) { return redis.Dial("tcp", mini.Addr()) }}

	client := transport.NewRedigo(pool, 10*time.Second)
	defer client.Close()
	replies, err := client.Do(context.Background(), "visits", // the key, which chooses the node of a cluster
		transport.Command{"SET", "visits", 41},
		transport.Command{"INCR", "visits"},
	)
	fmt.Println(replies, err)
	// Output:
	// [OK 42] <nil>
}
