package faults

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Redis forgets the scripts, as after SCRIPT FLUSH.
func TestScriptFlush(t *testing.T) {
	s := stage(t, "SCRIPT FLUSH, ten times", "not noticed", setting{logins: true, lease: patient})
	s.run(func(ctx context.Context) {
		s.redis.Do(t, "CONFIG", "RESETSTAT")
		said := func() int { return info(t, s.redis, "errorstat_NOSCRIPT:count=") }
		for range 10 {
			before := said()
			s.redis.Do(t, "SCRIPT", "FLUSH")
			eventually(t, s.longest, "Redis has said NOSCRIPT", func() bool { return said() > before })
			pause(ctx, 30*time.Millisecond)
		}
	})
	s.allAnswered()
}

// Another program's script keeps Redis busy, so that it replies BUSY to all other clients.
func TestBusyScript(t *testing.T) {
	s := stage(t, "Redis busy with a script for 1.5 s", "P8: 503, nothing lost, recovers by itself",
		setting{redis: []string{"--busy-reply-threshold", "100"}, logins: true, apart: true})
	s.run(func(ctx context.Context) {
		script, err := redis.DialURL(s.redis.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer script.Close()
		if err := script.Send("EVAL", "while true do end", 0); err != nil {
			t.Fatal(err)
		}
		if err := script.Flush(); err != nil {
			t.Fatal(err)
		}
		g := s.guestWith("")
		eventually(t, 5*time.Second, "Redis is busy", func() bool {
			return g.post(s.demos[0], "/reset").status == http.StatusServiceUnavailable
		})
		pause(ctx, 1500*time.Millisecond)
		s.redis.Do(t, "SCRIPT", "KILL")
		if _, err := script.Receive(); err == nil {
			t.Error("the script ended by itself")
		}
		s.mustHaveLogged("BUSY")
	})
}

// Redis has reached its limit of clients. It closes all connections, including subscriptions, and refuses
// new ones with an error.
func TestMaxClients(t *testing.T) {
	s := stage(t, "Redis at maxclients for 1.5 s", "P8: 503, recovers by itself", setting{logins: true, apart: true})
	s.run(func(ctx context.Context) {
		before := info(t, s.redis, "rejected_connections:")
		s.redis.Do(t, "CONFIG", "SET", "maxclients", 1)
		for range 15 {
			// These are all connections except the test's own.
			s.redis.Do(t, "CLIENT", "KILL", "TYPE", "normal")
			s.redis.Do(t, "CLIENT", "KILL", "TYPE", "pubsub")
			pause(ctx, 100*time.Millisecond)
		}
		rejected := info(t, s.redis, "rejected_connections:") - before
		s.redis.Do(t, "CONFIG", "SET", "maxclients", 10000)
		s.seen = fmt.Sprintf("%d connections refused", rejected)
		happened(t, "Redis has refused a connection", rejected, 1)
		s.mustHaveLogged("max number of clients")
	})
}

// Redis is full and evicts nothing: it refuses writes, and still serves reads. A holder that cannot save still
// releases its session at once, and a logout takes effect.
func TestOutOfMemory(t *testing.T) {
	s := stage(t, "Redis full for 1.5 s, noeviction", "P8: writes are 503, reads and logouts go on; nothing lost",
		setting{logins: true, apart: true, flags: []string{"-work", "800ms"}})
	s.run(func(ctx context.Context) {
		g := s.guest(s.demos[0])
		g.must("a write before", g.post(s.demos[0], "/incr"), http.StatusOK, "1")
		leaving := s.guest(s.demos[0])
		leaving.must("a write before", leaving.post(s.demos[0], "/incr"), http.StatusOK, "1")
		h := s.hold(s.demos[0], "held")
		s.redis.Do(t, "CONFIG", "SET", "maxmemory-policy", "noeviction")
		for !h.heldWhen("CONFIG", "SET", "maxmemory", 1) { // the machine is busy, so the holder has saved before
			s.redis.Do(t, "CONFIG", "SET", "maxmemory", 0)
			h.awaitLock()
		}
		h.must("the save of a holder", <-h.replies, http.StatusServiceUnavailable, "")
		if s.redis.Exists(t, h.lock) {
			t.Error("the session was not released")
		}
		for range 12 {
			g.must("a write", g.post(s.demos[0], "/incr"), http.StatusServiceUnavailable, "")
			g.must("a read", g.get(s.demos[1], "/count"), http.StatusOK, "1")
			pause(ctx, 100*time.Millisecond)
		}
		leaving.must("a logout", leaving.post(s.demos[1], "/logout"), http.StatusNoContent, "")
		leaving.must("the old cookie", leaving.get(s.demos[0], "/count"), http.StatusOK, "0")
		s.redis.Do(t, "CONFIG", "SET", "maxmemory", 0)
		g.must("a write after that", g.post(s.demos[0], "/incr"), http.StatusOK, "2")
		s.mustHaveLogged("OOM")
	})
}
