package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/alexedwards/scs/goredisstore"
	"github.com/alexedwards/scs/v2"
	"github.com/redis/go-redis/v9"
)

// connections is how many connections to Redis a peer may use: as many as
// there are clients, so that no peer waits for its own pool.
const connections = 64

// A peer is a session library that serves the same requests as all others, at
// an address of its own.
type peer struct {
	name  string
	locks bool // it promises to lose nothing
	addr  string
	close func()
}

// A library is what the handlers need of a peer.
type library struct {
	wrap func(http.Handler) http.Handler
	get  func(ctx context.Context, key string) int // absent is 0
	put  func(ctx context.Context, key string, v int)
	size func(ctx context.Context) int // the number of keys
}

// newPeers serves all peers. The first is Latchkey, the others are what it is
// compared with.
func newPeers(redisAddr string) ([]*peer, error) {
	latchkey, err := newLatchkey(redisAddr)
	if err != nil {
		return nil, err
	}
	return []*peer{latchkey, newSCS(redisAddr)}, nil
}

// newLatchkey has the options of a program that reads with GET.
func newLatchkey(redisAddr string) (*peer, error) {
	st, err := store.Open("redis://"+redisAddr, store.Options{})
	if err != nil {
		return nil, err
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails: crypto/rand ends the program first
	s, err := middleware.New(st, middleware.Options{
		Keys:   [][]byte{key},
		Cookie: http.Cookie{Name: "session"}, // plain HTTP: no __Host-, no Secure
		Mode: func(r *http.Request) middleware.Mode {
			if r.Method == http.MethodGet {
				return middleware.ReadOnly
			}
			return middleware.Exclusive
		},
	})
	if err != nil {
		_ = st.Close() // not used yet
		return nil, err
	}
	server := httptest.NewServer(library{
		wrap: s.Handler,
		get: func(ctx context.Context, key string) int {
			n, _ := session.Get[int](session.FromContext(ctx), key) // absent is 0
			return n
		},
		put:  func(ctx context.Context, key string, v int) { session.FromContext(ctx).Set(key, v) },
		size: func(ctx context.Context) int { return session.FromContext(ctx).Len() },
	}.handler())
	return &peer{
		name: "latchkey", locks: true, addr: server.Listener.Addr().String(),
		close: func() {
			server.Close()
			_ = st.Close() // the process ends
		},
	}, nil
}

// newSCS has the defaults of scs: gob, and no idle time-out, so that it need not
// write anything when a session is only read.
func newSCS(redisAddr string) *peer {
	client := redis.NewClient(&redis.Options{Addr: redisAddr, PoolSize: connections})
	s := scs.New()
	s.Store = goredisstore.New(client)
	s.ErrorFunc = func(w http.ResponseWriter, _ *http.Request, err error) { // the default also logs it
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
	server := httptest.NewServer(library{
		wrap: s.LoadAndSave,
		get:  s.GetInt,
		put:  func(ctx context.Context, key string, v int) { s.Put(ctx, key, v) },
		size: func(ctx context.Context) int { return len(s.Keys(ctx)) },
	}.handler())
	return &peer{
		name: "scs + goredisstore", addr: server.Listener.Addr().String(),
		close: func() {
			server.Close()
			_ = client.Close() // the process ends
		},
	}
}

// handler returns the program that all peers serve. Every answer is a number:
//
//	POST /incr   adds 1 to n, and answers n
//	POST /set    stores 1 under the key that the query is, and answers 1
//	GET  /count  answers n
//	GET  /size   answers the number of keys
func (l library) handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, answer := range map[string]func(*http.Request) int{
		"POST /incr": func(r *http.Request) int {
			n := l.get(r.Context(), "n") + 1
			l.put(r.Context(), "n", n)
			return n
		},
		"POST /set": func(r *http.Request) int {
			l.put(r.Context(), r.URL.RawQuery, 1)
			return 1
		},
		"GET /count": func(r *http.Request) int { return l.get(r.Context(), "n") },
		"GET /size":  func(r *http.Request) int { return l.size(r.Context()) },
	} {
		mux.Handle(pattern, l.wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, answer(r))
		})))
	}
	return mux
}
