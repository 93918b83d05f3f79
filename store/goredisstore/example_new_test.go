package goredisstore_test

import (
	"context"
	"fmt"
	"log"

	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/goredisstore"
	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// One server. For a cluster, see the other example; for Sentinel make the client by redis.NewFailoverClient.
func ExampleNew() {
	mini, err := miniredis.Run() // a Redis for this example
	if err != nil {
		log.Fatal(err)
	}
	defer mini.Close()
	client := redis.NewClient(&redis.Options{Addr: mini.Addr(), ContextTimeoutEnabled: true})
	defer client.Close() // the store leaves it open

	st, err := goredisstore.New(client, store.Options{})
	if err != nil {
		log.Fatal(err) // an option of the client breaks a promise
	}
	defer st.Close()
	fmt.Println(st.Ping(context.Background())) // New does not connect, so Redis may be started later
	// Output:
	// <nil>
}

// Options of go-redis with which sessions would not be safe are found at the start.
func ExampleNew_wrongOption() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	defer client.Close()
	_, err := goredisstore.New(client, store.Options{})
	fmt.Println(err)
	// Output:
	// goredisstore: ContextTimeoutEnabled is false, so a call to a server that hangs fails after ReadTimeout, whatever the deadline: set it to true
}
