package store_test

import (
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/internal/storetest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
)

// A store on a client that was given to it keeps the same promises as a store that made its own client. The same
// suite also runs over other clients.
func TestStoreOnAnyClient(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB, address string, timeout time.Duration) transport.Client {
		c := transport.NewRedigo(&redis.Pool{Dial: func() (redis.Conn, error) {
			return redis.Dial("tcp", address, redis.DialConnectTimeout(timeout))
		}}, timeout)
		t.Cleanup(func() { _ = c.Close() })
		return c
	})
}

// Processes have equally many turns.
func TestTurns(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	storetest.Turns(t, func(t testing.TB) *store.Store {
		st := store.New(server.Pool(t, 1), store.Options{Timeout: 10 * time.Second})
		t.Cleanup(func() { st.Close() })
		return st
	})
}
