package app

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

// newRedislock waits 4 ms, then twice as long each time, up to 64 ms.
func newRedislock(_ Config, client *redis.Client) (mutex, error) {
	locks := redislock.New(client)
	return mutex{
		lock: func(ctx context.Context, key string) (func() error, error) {
			held, err := locks.Obtain(ctx, key, lease, &redislock.Options{
				RetryStrategy: redislock.ExponentialBackoff(4*time.Millisecond, 64*time.Millisecond),
			})
			if err != nil {
				return nil, err
			}
			return func() error { return held.Release(ctx) }, nil
		},
		close: func() {},
	}, nil
}
