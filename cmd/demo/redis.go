package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/store"
	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"
)

// A server is the Redis of the demo: embedded, or a real one.
type server struct {
	url   string
	store *store.Store // with the lock
	pool  *redis.Pool  // for the sessions without one
	stop  func()       // ends the embedded Redis, if there is one
}

func openRedis(ctx context.Context, c config) (*server, error) {
	r := &server{url: c.redisURL, stop: func() {}}
	if r.url == "" {
		if err := r.embed(); err != nil {
			return nil, err
		}
	}
	var err error
	if r.store, err = store.Open(r.url, store.Options{Lease: c.lease}); err != nil {
		r.stop()
		return nil, fmt.Errorf("-redis: %w", err)
	}
	r.pool = &redis.Pool{MaxActive: 64, MaxIdle: 64, Wait: true, DialContext: r.dial}
	if err = r.store.Ping(ctx); err != nil {
		r.close()
		return nil, fmt.Errorf("-redis: %w", err)
	}
	return r, nil
}

// dial connects to the same Redis as the store, which has checked the URL.
func (r *server) dial(ctx context.Context) (redis.Conn, error) {
	const timeout = 2 * time.Second
	options := []redis.DialOption{redis.DialConnectTimeout(timeout), redis.DialReadTimeout(timeout), redis.DialWriteTimeout(timeout)}
	u, err := url.Parse(r.url)
	if err != nil || u.Scheme != "unix" {
		return redis.DialURLContext(ctx, r.url, options...)
	}
	password, _ := u.User.Password()
	database, _ := strconv.Atoi(u.Query().Get("db")) // none is 0
	options = append(options, redis.DialUsername(u.User.Username()), redis.DialPassword(password), redis.DialDatabase(database))
	return redis.DialContext(ctx, "unix", u.Path, options...)
}

func (r *server) close() {
	_ = r.store.Close() // the process ends
	_ = r.pool.Close()
	r.stop()
}

// embed starts a Redis in this process. Its clock stands still by itself, so
// that no lock or session would ever expire: a goroutine moves it on.
func (r *server) embed() error {
	mini := miniredis.NewMiniRedis()
	if err := mini.Start(); err != nil {
		return fmt.Errorf("starting the embedded Redis: %w", err)
	}
	done := make(chan struct{})
	var clock sync.WaitGroup
	clock.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		last := time.Now()
		for {
			select {
			case now := <-tick.C:
				mini.FastForward(now.Sub(last))
				last = now
			case <-done:
				return
			}
		}
	})
	r.url = "redis://" + mini.Addr()
	r.stop = func() {
		close(done)
		clock.Wait()
		mini.Close()
	}
	return nil
}
