package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/a2139e8d/latchkey/internal/embeddedredis"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
)

// A server is the demo's Redis, embedded or real, or several of them for Redlock. The sessions are in the
// first one.
type server struct {
	urls     []string // none: embedded
	pools    []*redis.Pool
	embedded []*embeddedredis.Redis
}

// nodes is the number of servers that are embedded for Redlock.
const nodes = 5

func openRedis(ctx context.Context, c config) (*server, error) {
	r := &server{urls: c.redisURLs}
	if len(r.urls) == 0 {
		return r, r.embed(c.usesRedlock())
	}
	for i, at := range r.urls {
		if err := reach(ctx, at); err != nil {
			r.close()
			return nil, fmt.Errorf("%s: %w", c.redisNumber(i), err)
		}
		r.add(&redis.Pool{DialContext: func(ctx context.Context) (redis.Conn, error) { return dial(ctx, at) }})
	}
	return r, nil
}

// reach checks a URL, as package store does, and whether its Redis replies.
func reach(ctx context.Context, at string) error {
	st, err := store.Open(at, store.Options{})
	if err != nil {
		return err
	}
	defer st.Close()
	if err := st.Ping(ctx); err != nil {
		return fmt.Errorf("%s: %w", shown(at), err)
	}
	return nil
}

// maxIdle is how long a connection may be idle before it is closed.
const maxIdle = 100 * time.Millisecond

// add adds a server. After a restart of Redis its idle connections are broken, and each would cost a request. So
// connections stay only from one request of a crowd to the next. Trying an idle one by a PING would not do: while Redis
// hangs, one request would wait for the time-out of each.
func (r *server) add(pool *redis.Pool) {
	pool.MaxActive, pool.MaxIdle, pool.IdleTimeout, pool.Wait = 64, 64, maxIdle, true
	r.pools = append(r.pools, pool)
}

// store opens the sessions.
func (r *server) store(c config) (*store.Store, error) {
	o := store.Options{Lease: c.lease}
	if len(r.urls) == 0 {
		return store.New(r.pools[0], o), nil
	}
	return store.Open(r.urls[0], o)
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
	for _, redis := range r.embedded {
		redis.Close()
	}
}

// embed starts one Redis in this process, or as many as Redlock needs.
func (r *server) embed(redlock bool) error {
	n := 1
	if redlock {
		n = nodes
	}
	for range n {
		redis, err := embeddedredis.Start(nil)
		if err != nil {
			return err
		}
		r.embedded = append(r.embedded, redis)
		r.add(redis.Pool())
	}
	return nil
}
