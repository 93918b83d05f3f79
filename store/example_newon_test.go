package store_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/a2139e8d/latchkey/store"
	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"
)

// A store on any client that package clienttest approves.
func ExampleNewOn() {
	mini, err := miniredis.Run() // a Redis for this example; a real program dials its own
	if err != nil {
		log.Fatal(err)
	}
	defer mini.Close()
	pool := &redis.Pool{Dial: func() (redis.Conn, error) { return redis.Dial("tcp", mini.Addr()) }}

	client := transport.NewRedigo(pool, 10*time.Second)
	defer client.Close() // after the store
	st := store.NewOn(client, store.Options{Timeout: 10 * time.Second})
	defer st.Close()
	fmt.Println(st.Ping(context.Background()))
	// Output:
	// <nil>
}
