package app

import (
	"context"
	"net/http"

	"github.com/redis/go-redis/v9"
)

// A mutex is a lock of somebody's, on a Redis.
type mutex struct {
	lock  lockFunc
	close func()
}

// locked is scs with a lock around each request: taken before the session is
// loaded, and given back when it is saved. A request without a cookie needs no
// lock, since nobody else has its session.
func locked(newMutex func(Config, *redis.Client) (mutex, error)) func(Config) (backend, error) {
	return func(c Config) (backend, error) {
		client := newGoRedis(c)
		m, err := newMutex(c, client)
		if err != nil {
			return backend{}, err
		}
		inner := newSCS(client)
		return backend{
			serve: func(work func(*http.Request, values) int) http.Handler { return m.around(inner.serve(work)) },
			lock:  m.lock,
			close: func() {
				m.close()
				inner.close()
			},
		}, nil
	}
}

func (m mutex) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cookie, err := r.Cookie("session")
		if err != nil {
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), endless)
		defer cancel()
		unlock, err := m.lock(ctx, cookie.Value+".lock")
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
		if err := unlock(); err != nil {
			panic(http.ErrAbortHandler) // the answer is on its way, and must not be believed
		}
	})
}
