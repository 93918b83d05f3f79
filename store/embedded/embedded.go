// Package embedded keeps sessions in a Redis inside the process: for development, before there is a Redis, and
// for nothing else. Sessions work as on a real Redis, with their locks and timeouts, in this process alone. When
// the store is closed or the program ends, all of them are forgotten, and the log says so at the start.
//
//	st, err := store.Open(os.Getenv("REDIS_URL"), store.Options{})
//	if os.Getenv("REDIS_URL") == "" {
//		st, err = embedded.Open(store.Options{})
//	}
//
// The Redis has no port, so no other program can read it. It is miniredis, whose scripts are much slower than those of
// a real Redis: measure nothing on it. Only programs that import this package contain miniredis. For tests of
// handlers there is package sessiontest, whose Redis can also be full, or unavailable.
package embedded

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/a2139e8d/latchkey/internal/embeddedredis"
	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/a2139e8d/latchkey/store"
)

// Open starts a Redis inside the process, and returns a store on it. [store.Store.Close] ends both. Each call starts
// a Redis of its own. On a 32-bit system, Open returns an error. If an option is wrong, it does so, too: TLS and
// Credentials must not be set, since nothing is dialled. The default of Timeout is one minute.
func Open(o store.Options) (*store.Store, error) {
	st, _, err := open(o)
	return st, err
}

func open(o store.Options) (*store.Store, *embeddedredis.Redis, error) {
	const dialling = "it is only for store.Open, since the embedded Redis is inside the process"
	switch {
	case o.TLS != nil:
		return nil, nil, errors.New("embedded: Options.TLS is set: " + dialling)
	case o.Credentials != nil:
		return nil, nil, errors.New("embedded: Options.Credentials is set: " + dialling)
	}
	o.Timeout = cmp.Or(o.Timeout, time.Minute) // it cannot be away; on a busy machine it may be slow
	redis, err := embeddedredis.Start(nil)
	if err != nil {
		return nil, nil, fmt.Errorf("embedded: %w", err)
	}
	st := store.NewOn(client{transport.NewRedigo(redis.Pool(), o.Timeout), redis}, o)
	if err := records.Of(st).Err(); err != nil {
		_ = st.Close() // there is nothing to save
		return nil, nil, err
	}
	slog.Warn("sessions are kept in this process only, and are forgotten when it ends: this is for development, use store.Open in production")
	return st, redis, nil
}

// A client belongs to its store, and the Redis to the client.
type client struct {
	*transport.Redigo
	redis *embeddedredis.Redis
}

// CloseWithStore implements [transport.Owned].
func (c client) CloseWithStore() error {
	defer c.redis.Close()
	return c.Redigo.Close()
}
