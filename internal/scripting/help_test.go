package scripting

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/testdata/redistest"
	"github.com/gomodule/redigo/redis"
)

// second-long times read well, and cost nothing in a bubble.
const s = time.Second

// inBubble runs f in virtual time. There synctest.Wait returns when everybody
// waits for something.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Parallel()
	synctest.Test(t, f)
}

// onServers runs f against an embedded Redis and against a real one.
func onServers(t *testing.T, f func(t *testing.T, server *redistest.Server)) {
	t.Parallel()
	redistest.Each(t, f)
}

// fill opens all n connections of a pool, and leaves them idle.
func fill(t *testing.T, pool *redis.Pool, n int) {
	t.Helper()
	for range n {
		c := pool.Get()
		defer c.Close()
		if _, err := c.Do("PING"); err != nil {
			t.Fatal(err)
		}
	}
}
