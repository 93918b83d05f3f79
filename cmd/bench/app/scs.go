package app

import (
	"context"
	"net/http"

	"github.com/alexedwards/scs/goredisstore"
	"github.com/alexedwards/scs/v2"
	"github.com/redis/go-redis/v9"
)

// openSCS has the defaults of scs: gob, and no idle time-out, so that it need not
// write anything when a session is only read.
func openSCS(c Config) (backend, error) {
	client := newGoRedis(c)
	return newSCS(client), nil
}

func newGoRedis(c Config) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: c.Redis, PoolSize: Connections, PoolTimeout: endless})
}

func newSCS(client *redis.Client) backend {
	s := scs.New()
	s.Store = goredisstore.New(client)
	s.ErrorFunc = func(w http.ResponseWriter, _ *http.Request, err error) { // the default also logs it
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
	return backend{
		serve: func(work func(*http.Request, values) int) http.Handler {
			return s.LoadAndSave(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer(w, work(r, scsValues{s, r.Context()}))
			}))
		},
		close: func() { _ = client.Close() }, // the process ends
	}
}

type scsValues struct {
	s   *scs.SessionManager
	ctx context.Context
}

func (v scsValues) get(key string) int        { return v.s.GetInt(v.ctx, key) }
func (v scsValues) put(key string, value any) { v.s.Put(v.ctx, key, value) }
func (v scsValues) size() int                 { return len(v.s.Keys(v.ctx)) }
