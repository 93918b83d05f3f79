package main

import (
	"testing"
	"time"

	redigo "github.com/gomodule/redigo/redis"
)

// Among many sessions, in many batches, each is counted once, and each lock is found. (Measured by hand: 100,000
// sessions take 1.6 s of this program's time, and 14 MB.)
func TestManySessions(t *testing.T) {
	s, st := withRedis(t)
	begin(t, st, id(0), "{}")
	hold(t, st, id(0), "POST /order")
	const n, held = 5000, 300
	copies(t, s.Pool(t, 1), keyOf(id(0)), func(i int) string { return keyOf(id(i)) }, n)
	copies(t, s.Pool(t, 1), keyOf(id(0))+".lock", func(i int) string { return keyOf(id(i)) + ".lock" }, held)
	if got := decoded[report](t, s.URL, "stats"); got.Sessions != n || got.Held != held {
		t.Errorf("%+v", got.tally)
	}
	seen := map[string]bool{}
	for _, h := range decoded[look](t, s.URL, "locks").Locks {
		seen[h.Session] = h.Request == "POST /order"
	}
	if len(seen) != held || !seen[id(0)] || !seen[id(held-1)] {
		t.Errorf("%d are held", len(seen))
	}
}

// copies makes many keys out of one, so that there are n.
func copies(t *testing.T, pool *redigo.Pool, key string, name func(i int) string, n int) {
	t.Helper()
	c := pool.Get()
	defer c.Close()
	value, err := redigo.Bytes(c.Do("GET", key))
	for i := 1; i < n && err == nil; i++ {
		err = c.Send("SET", name(i), value, "PX", time.Hour.Milliseconds())
	}
	if err == nil {
		_, err = c.Do("")
	}
	if err != nil {
		t.Fatal(err)
	}
}
