package app

import (
	"net/http"

	"github.com/boj/redistore"
	"github.com/gorilla/sessions"
)

// openGorilla has the defaults of redistore: gob, and a pool that asks each
// connection for a sign of life before it is used. Only the bound on the size of
// a session is gone, which is 4 KiB. The pool's own bound is for idle connections,
// and what is above it is dialled anew each time; so it is twice as large.
func openGorilla(c Config) (backend, error) {
	store, err := redistore.NewRediStore(2*Connections, "tcp", c.Redis, "", "", c.Key)
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

// serveGorilla saves by hand, before the answer and only where there is something
// to save, as programs do that use the library.
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
	n, _ := v.s.Values[key].(int) // absent is 0
	return n
}

func (v *gorillaValues) put(key string, value any) {
	v.s.Values[key] = value
	v.changed = true
}

func (v *gorillaValues) size() int { return len(v.s.Values) }
