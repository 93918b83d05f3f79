package store_test

import (
	"context"
	"fmt"
	"log"

	"github.com/a2139e8d/latchkey/store"
	"github.com/alicebob/miniredis/v2"
)

// A program opens its store when it starts.
func ExampleOpen() {
	mini, err := miniredis.Run() // a Redis for this example
	if err != nil {
		log.Fatal(err)
	}
	defer mini.Close()
	url := "redis://" + mini.Addr() // or os.Getenv("REDIS_URL")

	st, err := store.Open(url, store.Options{})
	if err != nil {
		log.Fatal(err) // the URL or an option is wrong; the error does not show the password
	}
	defer st.Close()
	fmt.Println(st.Ping(context.Background())) // Open does not connect, so Redis may be started later
	// Output:
	// <nil>
}

// A wrong URL is found at the start.
func ExampleOpen_wrongURL() {
	for _, url := range []string{"127.0.0.1:6379", "redis://one:6379,two:6379", "redis://app@127.0.0.1"} {
		_, err := store.Open(url, store.Options{})
		fmt.Println(err)
	}
	// Output:
	// store: redis URL: must begin with redis://, rediss://, valkey://, valkeys:// or unix://
	// store: redis URL: names several hosts: for Sentinel or a cluster use store/rueidisstore or store/goredisstore
	// store: redis URL: names a user without a password: write user:password@, or :password@
}
