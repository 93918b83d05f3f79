package app

import (
	"context"
	"math"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// newRedsync has the defaults of redsync, a pause of 50 to 250 ms above all, but
// goes on where it would give up after 32 tries.
func newRedsync(_ Config, client *redis.Client) (mutex, error) {
	locks := redsync.New(goredis.NewPool(client))
	return mutex{
		lock: func(ctx context.Context, key string) (func() error, error) {
			m := locks.NewMutex(key, redsync.WithExpiry(lease), redsync.WithTries(math.MaxInt))
			if err := m.LockContext(ctx); err != nil {
				return nil, err
			}
			return func() error {
				_, err := m.UnlockContext(ctx) // false comes with an error
				return err
			}, nil
		},
		close: func() {},
	}, nil
}
