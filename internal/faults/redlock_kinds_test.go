package faults

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// eachLock runs a fault for locks that are separate from the record. They cannot fence a
// write: the script that stores the record does that.
func eachLock(t *testing.T, f func(t *testing.T, lock string, with setting)) {
	for _, lock := range []string{"timestamp", "lease"} {
		t.Run(lock, func(t *testing.T) {
			t.Parallel()
			f(t, lock, setting{flags: []string{"-lock", lock}, visitors: 2, clients: 3, logins: true})
		})
	}
}

// Redis is killed, and still has the locks when it is back.
func TestOtherLocksRedisKilled(t *testing.T) {
	eachLock(t, func(t *testing.T, lock string, with setting) {
		with.redis = []string{"--appendonly", "yes", "--appendfsync", "always"}
		s := stage(t, lock+" lock: Redis killed and restarted, appendfsync always", "P1: no answered write lost", with)
		s.run(func(context.Context) { s.redis.Restart(t) })
	})
}

// All locks are deleted, again and again, so that two processes have the same.
func TestOtherLocksDeleted(t *testing.T) {
	eachLock(t, func(t *testing.T, lock string, with setting) {
		with.flags = append(with.flags, "-work", "20ms")
		s := stage(t, lock+" lock: locks deleted, many times", "P1: the record's own check loses nothing", with)
		s.run(func(context.Context) {
			s.contend(func() bool {
				for _, key := range s.redis.Keys(t) {
					if strings.Contains(key, ".lock") {
						s.redis.Do(t, "DEL", key)
					}
				}
				return s.logged("lock was lost") >= 5
			})
		})
	})
}

// A process is killed while a handler holds a session. Others get it after the lease.
func TestOtherLocksHolderKilled(t *testing.T) {
	eachLock(t, func(t *testing.T, lock string, with setting) {
		with.flags = append(with.flags, "-work", "30s")
		s := stage(t, lock+" lock: process killed while it holds a session", "P7: the session is free after the lease", with)
		s.run(func(context.Context) {
			holder, other := s.demos[0], s.demos[1]
			h := s.hold(holder, "held")
			s.close(holder)
			holder.Kill()
			if !s.redis.Exists(t, h.lock) {
				t.Error("the lock was not held when its holder was killed")
			}
			begun := time.Now()
			h.must("the next", h.post(other, "/incr"), 200, "1")
			s.seen = fmt.Sprintf("the next had it after %v", time.Since(begun).Round(10*time.Millisecond))
			if took := time.Since(begun); took > lease+2*time.Second {
				t.Errorf("the next had it after %v, with a lease of %v", took, lease)
			}
			h.must("what the killed process would have set", h.get(other, "/result"), 200, "0")
		})
	})
}

// A process is stopped for longer than the lease while a handler holds a session. When it
// continues, it cannot save, as another has had the session.
func TestOtherLocksHolderStopped(t *testing.T) {
	eachLock(t, func(t *testing.T, lock string, with setting) {
		with.flags = append(with.flags, "-work", "1s")
		s := stage(t, lock+" lock: process stopped for longer than its lease", "P3: a stale holder cannot write", with)
		s.run(func(ctx context.Context) {
			holder, other := s.demos[0], s.demos[1]
			h := s.hold(holder, "held")
			holder.Signal(t, syscall.SIGSTOP)
			if !s.redis.Exists(t, h.lock) {
				t.Error("the lock was not held when its holder was stopped")
			}
			h.must("the next", h.post(other, "/incr"), 200, "1")
			holder.Signal(t, syscall.SIGCONT)
			h.must("the one that was stopped", <-h.replies, 503, "")
			h.must("what it would have set", h.get(other, "/result"), 200, "0")
			h.must("what the next has set", h.get(other, "/count"), 200, "1")
		})
		s.mustHaveLogged("lock was lost")
	})
}
