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
func openLatchkey(c Config) (backend, error) {
	st, err := store.Open("redis://"+c.Redis, store.Options{Lease: lease})
	if err != nil {
		return backend{}, err
	}
	sessions, err := middleware.New(st, middleware.Options{
		Keys:       [][]byte{c.Key},
		Cookie:     http.Cookie{Name: "session"}, // plain HTTP: no __Host-, no Secure
		LockWait:   endless,
		MaxWaiters: crowd,
		Logger:     slog.New(slog.DiscardHandler),
		OnError: func(w http.ResponseWriter, _ *http.Request, err error) { // instead of the log
			http.Error(w, err.Error(), middleware.Status(err))
		},
		Mode: func(r *http.Request) middleware.Mode {
			if r.Method == http.MethodGet {
				return middleware.ReadOnly
			}
			return middleware.Exclusive
		},
	})
	if err != nil {
		return backend{}, errors.Join(err, st.Close())
	}
	pool := &redis.Pool{
		MaxActive: connections, MaxIdle: connections, Wait: true,
		DialContext: func(ctx context.Context) (redis.Conn, error) { return redis.DialContext(ctx, "tcp", c.Redis) },
	}
	spin := locker.NewSpin(pool, locker.Options{Lease: lease, Wait: endless, MaxWaiters: crowd})
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
