package faults

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/cmd/faults/rig"
)

// eachLock runs a fault for the locks that lie apart from the record, and so cannot
// fence a write: the record's own check does.
func eachLock(t *testing.T, f func(t *testing.T, lock string, with setting)) {
	for _, lock := range []string{"timestamp", "lease"} {
		t.Run(lock, func(t *testing.T) {
			t.Parallel()
			f(t, lock, setting{flags: []string{"-lock", lock}, visitors: 2, clients: 3, logins: true})
		})
	}
}

// Redis is killed, with the locks and all.
func TestOtherLocksRedisKilled(t *testing.T) {
	eachLock(t, func(t *testing.T, lock string, with setting) {
		with.redis = []string{"--appendonly", "yes", "--appendfsync", "always"}
		s := stage(t, lock+" lock: Redis killed and restarted, appendfsync always", "P1: no answered write lost", with)
		s.suffer(func(context.Context) { s.redis.Restart(t) })
	})
}

// Somebody deletes the locks, again and again, so that two have one.
func TestOtherLocksDeleted(t *testing.T) {
	eachLock(t, func(t *testing.T, lock string, with setting) {
		with.flags = append(with.flags, "-work", "20ms")
		s := stage(t, lock+" lock: locks deleted, many times", "P1: the record's own check loses nothing", with)
		s.suffer(func(context.Context) {
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
		s.suffer(func(context.Context) {
			victim, other := s.demos[0], s.demos[1]
			g := s.guest(other)
			_, key := s.holds(g, victim)
			s.close(victim)
			victim.Kill()
			if !s.redis.Exists(t, key) {
				t.Error("the lock was not held when its holder was killed")
			}
			begun := time.Now()
			g.must("the next", g.post(other, "/incr"), 200, "1")
			s.seen = fmt.Sprintf("the next had it after %v", time.Since(begun).Round(10*time.Millisecond))
			if took := time.Since(begun); took > lease+2*time.Second {
				t.Errorf("the next had it after %v, with a lease of %v", took, lease)
			}
			g.must("what the killed one would have set", g.get(other, "/result"), 200, "0")
		})
	})
}

// A process is stopped while a handler holds a session, for longer than the lease. When
// it goes on, it cannot save, as another has had the session.
func TestOtherLocksHolderStopped(t *testing.T) {
	eachLock(t, func(t *testing.T, lock string, with setting) {
		with.flags = append(with.flags, "-work", "1s")
		s := stage(t, lock+" lock: process stopped for longer than its lease", "P3: a stale holder cannot write", with)
		s.suffer(func(ctx context.Context) {
			victim, other := s.demos[0], s.demos[1]
			g := s.guest(other)
			answer, key := s.holds(g, victim)
			victim.Signal(t, syscall.SIGSTOP)
			if !s.redis.Exists(t, key) {
				t.Error("the lock was not held when its holder was stopped")
			}
			g.must("the next", g.post(other, "/incr"), 200, "1")
			victim.Signal(t, syscall.SIGCONT)
			g.must("who was stopped", <-answer, 503, "")
			g.must("what it would have set", g.get(other, "/result"), 200, "0")
			g.must("what the next has set", g.get(other, "/count"), 200, "1")
		})
		if s.logged("lock was lost") == 0 {
			t.Error("nobody was told that the lock was lost")
		}
	})
}

// holds lets a demo hold a guest's session for its -work, and returns the key of the lock.
func (s *scene) holds(g *guest, d *rig.Demo) (answer chan reply, lock string) {
	s.Helper()
	answer, lock = make(chan reply, 1), rig.RecordKey(s.T, g.cookie)+".lock"
	go func() { answer <- g.set(d, "held") }()
	eventually(s.T, lockWait, "the session is held", func() bool { return s.redis.Exists(s.T, lock) })
	return answer, lock
}
