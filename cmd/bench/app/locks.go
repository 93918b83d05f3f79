package app

import (
	"context"
	"crypto/rand"
	"errors"
	"math"
	"net/http"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// locked is scs with a lock around each request, acquired before the session is loaded and released after it
// is saved.
func locked(newLock func(Config, *redis.Client) (lock lockFunc, close func(), err error)) func(Config) (backend, error) {
	return func(c Config) (backend, error) {
		client := newGoRedis(c)
		lock, closeLock, err := newLock(c, client)
		if err != nil {
			return backend{}, errors.Join(err, client.Close())
		}
		inner := newSCS(client)
		return backend{
			serve: func(work func(*http.Request, values) int) http.Handler { return lock.around(inner.serve(work)) },
			lock:  lock,
			close: func() {
				closeLock()
				inner.close()
			},
		}, nil
	}
}

// around acquires no lock for a request without a cookie: no other request has its session.
func (lock lockFunc) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cookie, err := r.Cookie("session")
		if err != nil {
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), endless)
		defer cancel()
		unlock, err := lock(ctx, cookie.Value+".lock")
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
		if err := unlock(); err != nil {
			panic(http.ErrAbortHandler) // the response is on its way, and must not be believed
		}
	})
}

func noClose() {}

// newRueidislock has one key for each lock, as the other peers have, and otherwise the defaults. With
// NoLoopTracking it would be about 15 % faster, but stall more often.
func newRueidislock(c Config, _ *redis.Client) (lockFunc, func(), error) {
	locks, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{c.Redis}},
		KeyValidity:  lease,
		KeyMajority:  1,
	})
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, key string) (func() error, error) {
		_, release, err := locks.WithContext(ctx, key)
		if err != nil {
			return nil, err
		}
		return func() error {
			release() // waits for Redis
			return nil
		}, nil
	}, locks.Close, nil
}

// newRedsync has the defaults of redsync, above all a pause of 50 to 250 ms. But it does not give up after 32
// tries.
func newRedsync(_ Config, client *redis.Client) (lockFunc, func(), error) {
	locks := redsync.New(goredis.NewPool(client))
	return func(ctx context.Context, key string) (func() error, error) {
		m := locks.NewMutex(key, redsync.WithExpiry(lease), redsync.WithTries(math.MaxInt))
		if err := m.LockContext(ctx); err != nil {
			return nil, err
		}
		return func() error {
			_, err := m.UnlockContext(ctx) // false comes with an error
			return err
		}, nil
	}, noClose, nil
}

// newRedislock waits 4 ms, then twice as long each time, up to 64 ms.
func newRedislock(_ Config, client *redis.Client) (lockFunc, func(), error) {
	locks := redislock.New(client)
	return func(ctx context.Context, key string) (func() error, error) {
		held, err := locks.Obtain(ctx, key, lease, &redislock.Options{
			RetryStrategy: redislock.ExponentialBackoff(4*time.Millisecond, 64*time.Millisecond),
		})
		if err != nil {
			return nil, err
		}
		return func() error { return held.Release(ctx) }, nil
	}, noClose, nil
}

// compareAndDelete releases a lock only for its holder.
var compareAndDelete = redis.NewScript(`
if redis.call("GET", KEYS[1]) == ARGV[1] then
	return redis.call("DEL", KEYS[1])
end
return 0`)

// newSpin returns the lock that articles show: a request that does not acquire it sleeps for a fixed time and
// tries again. In the articles an abandoned lock stays for ever; here it has a lease.
func newSpin(pause time.Duration) func(Config, *redis.Client) (lockFunc, func(), error) {
	return func(_ Config, client *redis.Client) (lockFunc, func(), error) {
		return func(ctx context.Context, key string) (func() error, error) {
			token := rand.Text()
			for {
				won, err := client.SetNX(ctx, key, token, lease).Result()
				if err != nil {
					return nil, err
				}
				if won {
					break
				}
				select {
				case <-time.After(pause):
				case <-ctx.Done():
					return nil, context.Cause(ctx)
				}
			}
			return func() error {
				n, err := compareAndDelete.Run(ctx, client, []string{key}, token).Int()
				if err == nil && n == 0 {
					err = errors.New("the lock was lost")
				}
				return err
			}, nil
		}, noClose, nil
	}
}
