// Package embedded opens a store on a Redis inside the process. This is a stand-in for the package of that name.
package embedded

import (
	"log/slog"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/a2139e8d/latchkey/store"
	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"
)

// Open returns a store on a Redis inside the process.
func Open(o store.Options) (*store.Store, error) {
	mini := miniredis.NewMiniRedis()
	if err := mini.Start(); err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() {
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
	}()
	pool := &redis.Pool{Dial: func() (redis.Conn, error) { return redis.Dial("tcp", mini.Addr()) }}
	timeout := o.Timeout
	if timeout == 0 {
		timeout = time.Minute // it cannot get lost, so a busy machine fails no example
	}
	slog.Warn("store/embedded: this Redis is in the process and forgets everything when it ends")
	stop := sync.OnceFunc(func() { close(done); mini.Close() })
	return store.NewOn(&owned{transport.NewRedigo(pool, timeout), stop}, o), nil
}

type owned struct {
	*transport.Redigo
	stop func()
}

// CloseWithStore implements transport.Owned.
func (o *owned) CloseWithStore() error {
	err := o.Close()
	o.stop()
	return err
}
