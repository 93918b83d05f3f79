package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
)

// A server is the demo's Redis, embedded or real, or several of them for Redlock. The sessions are in the
// first one.
type server struct {
	urls  []string
	pools []*redis.Pool
	stop  []func() // functions that end the embedded servers
}

// nodes is the number of servers that are embedded for Redlock.
const nodes = 5

func openRedis(ctx context.Context, c config) (*server, error) {
	r := &server{urls: c.redisURLs}
	if len(r.urls) == 0 {
		if err := r.embed(c.usesRedlock()); err != nil {
			r.close()
			return nil, err
		}
	}
	for _, at := range r.urls {
		r.pools = append(r.pools, &redis.Pool{MaxActive: 64, MaxIdle: 64, Wait: true,
			DialContext: func(ctx context.Context) (redis.Conn, error) { return dial(ctx, at) }})
	}
	// Package store checks the URLs.
	for _, at := range r.urls {
		st, err := store.Open(at, store.Options{})
		if err == nil {
			err = st.Ping(ctx)
			_ = st.Close() // only opened for the check
		}
		if err != nil {
			r.close()
			return nil, fmt.Errorf("%s: %w", c.redisFrom, err)
		}
	}
	return r, nil
}

// store opens the sessions.
func (r *server) store(c config) (*store.Store, error) {
	return store.Open(r.urls[0], store.Options{Lease: c.lease})
}

// dial connects to a Redis. Its URL has been checked.
func dial(ctx context.Context, at string) (redis.Conn, error) {
	const timeout = 2 * time.Second
	options := []redis.DialOption{redis.DialConnectTimeout(timeout), redis.DialReadTimeout(timeout), redis.DialWriteTimeout(timeout)}
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "unix" {
		return redis.DialURLContext(ctx, at, options...)
	}
	password, _ := u.User.Password()
	database, _ := strconv.Atoi(u.Query().Get("db")) // 0 if absent
	options = append(options, redis.DialUsername(u.User.Username()), redis.DialPassword(password), redis.DialDatabase(database))
	return redis.DialContext(ctx, "unix", u.Path, options...)
}

func (r *server) close() {
	for _, pool := range r.pools {
		_ = pool.Close() // the process is about to end
	}
	for _, stop := range r.stop {
		stop()
	}
}

// embed starts one Redis, or as many as Redlock needs.
func (r *server) embed(redlock bool) error {
	n := 1
	if redlock {
		n = nodes
	}
	for range n {
		at, stop, err := startEmbedded()
		if err != nil {
			return err
		}
		r.urls = append(r.urls, at)
		r.stop = append(r.stop, stop)
	}
	return nil
}
