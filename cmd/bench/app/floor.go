package app

import (
	"crypto/rand"
	"net/http"
	"sync"
)

// openFloor keeps no sessions. It measures what a request costs in any case; the rest is the cost of a
// library. The handler is the same as with a library, so it needs something to read and to write: a map in
// this process, found by the verbatim Cookie header. No other process sees the map, so a visitor of two
// processes has two maps.
func openFloor(Config) (backend, error) {
	f := floor{visitors: make(map[string]*memory)}
	return backend{
		serve: func(work func(*http.Request, values) int) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				cookie := r.Header.Get("Cookie")
				if cookie == "" {
					cookie = "session=" + rand.Text()
					w.Header().Set("Set-Cookie", cookie)
				}
				answer(w, work(r, f.find(cookie)))
			})
		},
		close: func() {},
	}, nil
}

type floor struct {
	mu       sync.Mutex
	visitors map[string]*memory // by cookie, guarded by mu
}

func (f *floor) find(cookie string) *memory {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.visitors[cookie]
	if !ok {
		m = &memory{values: make(map[string]any)}
		f.visitors[cookie] = m
	}
	return m
}

// memory is not locked for a whole request: concurrent requests lose writes, as without a lock.
type memory struct {
	mu     sync.Mutex
	values map[string]any // guarded by mu
}

func (m *memory) get(key string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, _ := m.values[key].(int) // 0 if absent
	return n
}

func (m *memory) put(key string, value any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[key] = value
}

func (m *memory) size() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.values)
}
