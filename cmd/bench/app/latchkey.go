package app

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/a2139e8d/latchkey/locker"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
)

// crowd exceeds the number of requests that any workload sends to one process at once.
const crowd = 1024

// openLatchkey has the options of a program in which GET only reads. It uses only names that every version of
// the library has, so that -against can build it with an older version.
func openLatchkey(c Config) (backend, error) { return openLatchkeyWith(c, middleware.Options{}) }

// openLatchkeyWith is openLatchkey with further options.
func openLatchkeyWith(c Config, o middleware.Options) (backend, error) {
	st, err := store.Open("redis://"+c.Redis, store.Options{Lease: lease, Timeout: endless})
	if err != nil {
		return backend{}, err
	}
	o.Keys = [][]byte{c.Key}
	o.Cookie = http.Cookie{Name: "session"} // plain HTTP: no __Host-, no Secure
	o.LockWait, o.MaxWaiters = endless, crowd
	o.Logger = slog.New(slog.DiscardHandler)
	o.OnError = func(w http.ResponseWriter, _ *http.Request, err error) { // instead of the log
		http.Error(w, err.Error(), middleware.Status(err))
	}
	o.Mode = func(r *http.Request) middleware.Mode {
		if r.Method == http.MethodGet {
			return middleware.ReadOnly
		}
		return middleware.Exclusive
	}
	sessions, err := middleware.New(st, o)
	if err != nil {
		return backend{}, errors.Join(err, st.Close())
	}
	pool := &redis.Pool{
		MaxActive: connections, MaxIdle: connections, Wait: true,
		DialContext: func(ctx context.Context) (redis.Conn, error) { return redis.DialContext(ctx, "tcp", c.Redis) },
	}
	spin := locker.NewSpin(pool, locker.Options{Lease: lease, Wait: endless, MaxWaiters: crowd, Timeout: endless})
	return backend{
		serve: func(work func(*http.Request, values) int) http.Handler {
			return sessions.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer(w, work(r, latchkeyValues{session.FromContext(r.Context())}))
			}))
		},
		lock: func(ctx context.Context, key string) (func() error, error) {
			held, err := spin.Lock(ctx, key)
			if err != nil {
				return nil, err
			}
			return func() error { return held.Unlock(ctx) }, nil
		},
		close: func() {
			_ = errors.Join(st.Close(), pool.Close()) // the process ends
		},
	}, nil
}

type latchkeyValues struct{ s *session.Session }

func (v latchkeyValues) get(key string) int {
	n, _ := session.Get[int](v.s, key) // 0 if absent
	return n
}

func (v latchkeyValues) put(key string, value any) { v.s.Set(key, value) }
func (v latchkeyValues) size() int                 { return v.s.Len() }
