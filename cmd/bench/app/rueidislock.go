package app

import (
	"context"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// newRueidislock has one key for each lock, as the others have, and leaves all
// else at its default. NoLoopTracking would make it some 15 % faster, but then it
// stands still more often.
func newRueidislock(c Config, _ *redis.Client) (mutex, error) {
	locks, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{c.Redis}},
		KeyValidity:  lease,
		KeyMajority:  1,
	})
	if err != nil {
		return mutex{}, err
	}
	return mutex{
		lock: func(ctx context.Context, key string) (func() error, error) {
			_, release, err := locks.WithContext(ctx, key)
			if err != nil {
				return nil, err
			}
			return func() error {
				release() // waits for Redis
				return nil
			}, nil
		},
		close: locks.Close,
	}, nil
}
