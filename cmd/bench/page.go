package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/a2139e8d/latchkey/locker"
	"github.com/gomodule/redigo/redis"
)

// A page is what each request of the experiment asks for: it adds 1 to a counter
// in Redis, under one lock that all of them need.
type page struct {
	pool *redis.Pool
	hold time.Duration // between the page's GET and its SET
}

// arrival is what a request takes before it asks for the lock, for its connection
// and the start of the page. Without it, whoever gives the lock back would be the
// next to take it, before anybody wakes up.
const arrival = time.Millisecond

const (
	lockKey    = "sleep:lock"
	counterKey = "sleep:counter"
)

// newPage returns a page that has a connection for each of n workers, all of
// them open.
func newPage(ctx context.Context, addr string, n int, hold time.Duration) (*page, error) {
	p := &page{hold: hold, pool: &redis.Pool{
		MaxIdle: n, MaxActive: n, Wait: true,
		DialContext: func(ctx context.Context) (redis.Conn, error) {
			return redis.DialContext(ctx, "tcp", addr,
				redis.DialReadTimeout(patience), redis.DialWriteTimeout(patience))
		},
	}}
	var err error
	for range n {
		conn, e := p.pool.GetContext(ctx)
		err = errors.Join(err, e)
		defer conn.Close()
	}
	if err != nil {
		return nil, errors.Join(err, p.pool.Close())
	}
	return p, nil
}

// A visit is how long the parts of one request took, in ms.
type visit struct {
	take, hold, release float64
	gaveUp              bool // without the lock, after take
}

// request takes the lock, works under it, and gives it back.
func (p *page) request(ctx context.Context, take taker) (visit, error) {
	var v visit
	time.Sleep(arrival)
	began := time.Now()
	lease, err := take(ctx, lockKey)
	taken := time.Now()
	v.take = millis(taken.Sub(began))
	if errors.Is(err, locker.ErrTimeout) {
		v.gaveUp = true
		return v, nil
	}
	if err != nil {
		return v, err
	}
	err = p.work(ctx)
	worked := time.Now()
	v.hold = millis(worked.Sub(taken))
	err = errors.Join(err, lease.Unlock(ctx))
	v.release = millis(time.Since(worked))
	return v, err
}

// work adds 1 to the counter, in the way that loses updates where two do it at
// once. It waits in between as if the page were made elsewhere: who computes
// does not leave the processor to the others.
func (p *page) work(ctx context.Context) error {
	conn, err := p.pool.GetContext(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	n, err := redis.Int(redis.DoContext(conn, ctx, "GET", counterKey))
	if err != nil {
		return fmt.Errorf("reading the counter: %w", err)
	}
	time.Sleep(p.hold)
	if _, err := redis.DoContext(conn, ctx, "SET", counterKey, n+1); err != nil {
		return fmt.Errorf("writing the counter: %w", err)
	}
	return nil
}

// reset sets the counter to 0, and leaves nothing else in Redis but scripts.
func (p *page) reset(ctx context.Context, s *redisServer) error {
	if err := s.admin.FlushDB(ctx).Err(); err != nil {
		return fmt.Errorf("emptying Redis: %w", err)
	}
	return s.admin.Set(ctx, counterKey, 0, 0).Err()
}

// verify makes sure that every request that got the lock was alone with it.
func (p *page) verify(ctx context.Context, s *redisServer, served int) error {
	n, err := s.admin.Get(ctx, counterKey).Result()
	if err == nil && n != strconv.Itoa(served) {
		err = fmt.Errorf("the counter is %s after %d requests: the lock does not lock", n, served)
	}
	return err
}

// newLocker returns the constructor of the lock with the given name, or nil.
func (p *page) newLocker(name string) func(locker.Options) locker.Locker {
	switch name {
	case "spin":
		return func(o locker.Options) locker.Locker { return locker.NewSpin(p.pool, o) }
	case "timestamp":
		return func(o locker.Options) locker.Locker { return locker.NewTimestamp(p.pool, o) }
	default:
		return nil
	}
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
