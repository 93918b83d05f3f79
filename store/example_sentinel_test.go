package store_test

import (
	"context"
	"errors"
	"log"
	"net"
	"time"

	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
)

// With Sentinel, the pool asks the sentinels for the master whenever it connects. They
// break the connections to a master that they demote, so that they are asked again. After a
// SENTINEL FAILOVER that takes some ten seconds: REDIS.md says what to do before it.
func ExampleNew_sentinel() {
	sentinels := []string{"sentinel-1:26379", "sentinel-2:26379", "sentinel-3:26379"}
	dial := func(ctx context.Context, addr string) (redis.Conn, error) {
		return redis.DialContext(ctx, "tcp", addr, redis.DialConnectTimeout(time.Second),
			redis.DialReadTimeout(2*time.Second))
	}
	master := func(ctx context.Context, sentinel string) (redis.Conn, error) {
		s, err := dial(ctx, sentinel)
		if err != nil {
			return nil, err
		}
		defer s.Close()
		at, err := redis.Strings(s.Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "sessions"))
		if err != nil {
			return nil, err
		}
		c, err := dial(ctx, net.JoinHostPort(at[0], at[1]))
		if err != nil {
			return nil, err
		}
		// The sentinel may not know yet that this is no master any more.
		if role, err := redis.Values(c.Do("ROLE")); err != nil || string(role[0].([]byte)) != "master" {
			c.Close()
			return nil, errors.Join(errors.New("no master at "+at[0]), err)
		}
		return c, nil
	}
	pool := &redis.Pool{MaxIdle: 64, MaxActive: 64, IdleTimeout: 4 * time.Minute,
		DialContext: func(ctx context.Context) (redis.Conn, error) {
			var errs []error
			for _, sentinel := range sentinels {
				c, err := master(ctx, sentinel)
				if err == nil {
					return c, nil
				}
				errs = append(errs, err)
			}
			return nil, errors.Join(errs...)
		}}
	st := store.New(pool, store.Options{})
	if err := st.Ping(context.Background()); err != nil {
		log.Print(err) // no sentinel knows a master just now
	}
}
