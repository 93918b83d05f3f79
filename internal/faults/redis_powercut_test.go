package faults

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
	"github.com/a2139e8d/latchkey/internal/redistest"
)

// The writes of a killed process are safe in the kernel. After a power cut only synced data is left. With
// appendfsync always that is everything to which Redis has replied.
func TestPowerCutWithLogAlways(t *testing.T) {
	m, dir := rig.NewMachine(t), t.TempDir()
	s := stage(t, "power cut of Redis, appendfsync always", "P1: no answered write lost",
		setting{env: m.Env, redis: withLog(dir, "always"), logins: true})
	s.run(func(context.Context) {
		eventually(t, 20*time.Second, "Redis has synced ten times", func() bool { return m.Syncs() >= 10 }) // the disk may be busy
		s.redis.Stop(t)
		s.seen = fmt.Sprintf("%d bytes of the log cut off", cutOff(t, dir, m))
		s.redis.Restart(t)
	})
}

// With appendfsync everysec, Redis replies before it has synced. store/REDIS.md says what that may cost:
// the last moments before the crash, and nothing else.
func TestPowerCutWithLogEverySecond(t *testing.T) {
	m, dir := rig.NewMachine(t), t.TempDir()
	s := stage(t, "power cut of Redis, appendfsync everysec", "only what was answered in the last 2 s is lost",
		setting{env: m.Env, redis: withLog(dir, "everysec")})
	s.run(func(ctx context.Context) {
		before := m.Syncs() + 2
		eventually(t, 10*time.Second, "Redis syncs what is there", func() bool { return m.Syncs() > before })
		pause(ctx, 600*time.Millisecond) // so that there is something to lose
		from := time.Now()
		s.redis.Stop(t)
		// Redis stays down until all clients that have sent a command before have timed out.
		silent := s.summary().Silent
		eventually(t, 2*timeout, "all have noticed that Redis is away", func() bool {
			return s.summary().Silent > silent+3*s.setting.visitors*s.clients
		})
		cutOff(t, dir, m)
		saved := t.TempDir()
		if err := os.CopyFS(saved, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		s.setback = setback(t, from, redistest.Real(t, withLog(saved, "always")...))
		s.redis.Restart(t)
	})
	var oldest time.Duration
	for _, v := range s.visitors {
		oldest = max(oldest, v.Oldest(*s.setback))
	}
	s.seen = fmt.Sprintf("%d answered writes lost, the oldest %v old", s.lost, oldest.Round(time.Millisecond))
	if oldest > recent+lateSince(s.begun) {
		t.Errorf("Redis lost a write that it had confirmed %v before", oldest)
	}
	happened(t, "a write was lost", s.lost, 1)
}

// recent is the greatest age of writes that are lost with appendfsync everysec. Redis begins a sync every second,
// but waits for up to two seconds if the one before is late.
const recent = 2*time.Second + 500*time.Millisecond

// cutOff shortens Redis's log to the synced part, and returns by how much.
func cutOff(t *testing.T, dir string, m *rig.Machine) int64 {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "appendonlydir", "*.incr.aof"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("Redis's log: %q, %v", logs, err)
	}
	info, err := os.Stat(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(logs[0], m.Synced()); err != nil {
		t.Fatal(err)
	}
	return info.Size() - m.Synced()
}
