package goredisstore_test

import (
	"context"
	"log"
	"time"

	"github.com/a2139e8d/latchkey/locker"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/goredisstore"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

// A cluster.
func ExampleNew_cluster() {
	c := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs:                 []string{"redis-1:6379", "redis-2:6379", "redis-3:6379"},
		ContextTimeoutEnabled: true,
	})
	st, err := goredisstore.New(c, store.Options{})
	if err != nil {
		log.Fatal(err) // an option of c breaks a promise
	}
	if err := st.Ping(context.Background()); err != nil {
		log.Print(err) // the cluster cannot be reached just now
	}
	// middleware.New(st, …)
}

// Locks on the same client, and on several independent servers.
func ExampleNewClient_redlock() {
	var nodes []transport.Client
	for _, address := range []string{"redis-1:6379", "redis-2:6379", "redis-3:6379"} {
		c := redis.NewClient(&redis.Options{Addr: address, ContextTimeoutEnabled: true})
		node, err := goredisstore.NewClient(c, 200*time.Millisecond)
		if err != nil {
			log.Fatal(err)
		}
		nodes = append(nodes, node)
	}
	jobs := locker.NewRedlockOn(nodes, locker.Options{Timeout: 200 * time.Millisecond})
	reports := locker.New(locker.SpinAlgorithm(nodes[0]), locker.Options{})
	_, _ = jobs, reports
}

// go-redis writes lines of its own while Redis is unavailable. They say no more than Latchkey's line does.
func Example_silent() {
	logging.Disable() // of github.com/redis/go-redis/v9/logging
}
