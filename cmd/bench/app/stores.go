package app

import (
	"context"
	"net/http"

	"github.com/alexedwards/scs/goredisstore"
	"github.com/alexedwards/scs/v2"
	"github.com/boj/redistore"
	"github.com/gorilla/sessions"
	"github.com/redis/go-redis/v9"
)

// openSCS has the defaults of scs: gob, and no idle timeout, so that nothing is
// written when a session is only read.
func openSCS(c Config) (backend, error) { return newSCS(newGoRedis(c)), nil }

func newGoRedis(c Config) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: c.Redis, PoolSize: connections, PoolTimeout: endless})
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

// openGorilla has the defaults of redistore: gob, and a PING before each use of a connection. Two settings
// differ: a session may be larger than 4 KiB; and the pool is twice as large, since its size bounds the idle
// connections, and each connection beyond that is dialled for one use.
func openGorilla(c Config) (backend, error) {
	store, err := redistore.NewRediStore(2*connections, "tcp", c.Redis, "", "", c.Key)
	if err != nil {
		return backend{}, err
	}
	store.SetMaxLength(0)
	return backend{
		serve: func(work func(*http.Request, values) int) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if err := serveGorilla(store, w, r, work); err != nil {
					http.Error(w, err.Error(), http.StatusInternalServerError)
				}
			})
		},
		close: func() { _ = store.Close() }, // the process ends
	}, nil
}

// serveGorilla saves by hand, before the response and only if the session has changed, as programs with that
// library do.
func serveGorilla(store sessions.Store, w http.ResponseWriter, r *http.Request, work func(*http.Request, values) int) error {
	s, err := store.Get(r, "session")
	if err != nil {
		return err
	}
	v := &gorillaValues{s: s}
	n := work(r, v)
	if v.changed {
		if err := s.Save(r, w); err != nil {
			return err
		}
	}
	answer(w, n)
	return nil
}

type gorillaValues struct {
	s       *sessions.Session
	changed bool
}

func (v *gorillaValues) get(key string) int {
	n, _ := v.s.Values[key].(int) // 0 if absent
	return n
}

func (v *gorillaValues) put(key string, value any) {
	v.s.Values[key] = value
	v.changed = true
}

func (v *gorillaValues) size() int { return len(v.s.Values) }
