package app

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// newSpin returns the lock that is found in articles: who does not get it sleeps
// for a fixed time, and tries again. A lock that was left behind would stay for
// ever there; here it has a lease.
func newSpin(pause time.Duration) func(Config, *redis.Client) (mutex, error) {
	return func(_ Config, client *redis.Client) (mutex, error) {
		return mutex{
			lock: func(ctx context.Context, key string) (func() error, error) {
				token := rand.Text()
				for {
					won, err := client.SetNX(ctx, key, token, lease).Result()
					if err != nil {
						return nil, err
					}
					if won {
						return func() error { return releaseSpin(ctx, client, key, token) }, nil
					}
					select {
					case <-time.After(pause):
					case <-ctx.Done():
						return nil, context.Cause(ctx)
					}
				}
			},
			close: func() {},
		}, nil
	}
}

// compareAndDelete leaves a lock alone that is somebody else's by now.
var compareAndDelete = redis.NewScript(`
if redis.call("GET", KEYS[1]) == ARGV[1] then
	return redis.call("DEL", KEYS[1])
end
return 0`)

func releaseSpin(ctx context.Context, client *redis.Client, key, token string) error {
	n, err := compareAndDelete.Run(ctx, client, []string{key}, token).Int()
	if err == nil && n == 0 {
		err = errors.New("the lock was lost")
	}
	return err
}
