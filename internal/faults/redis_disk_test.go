package faults

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
)

// smallDisk returns a disk to fill up. Where that is not possible, the table says so.
func smallDisk(t *testing.T, fault, promise string) *rig.Disk {
	t.Helper()
	disk := rig.NewDisk(t)
	if disk == nil {
		const cannot = "this user may not mount a disk"
		note(row{fault: fault, promise: promise, undone: cannot})
		t.Skip(cannot)
	}
	return disk
}

// There is no room for Redis's log. With everysec, Redis continues to serve reads, refuses
// writes, and recovers by itself.
func TestDiskFullWithLogEverySecond(t *testing.T) {
	t.Parallel()
	const fault, promise = "Redis's disk full for 1.5 s, appendfsync everysec", "P8: 503, nothing lost, back by itself"
	disk := smallDisk(t, fault, promise)
	s := stage(t, fault, promise, setting{redis: withLog(disk.Dir, "everysec"), logins: true})
	s.run(func(ctx context.Context) {
		g := s.guest(s.demos[0])
		disk.Fill(t)
		eventually(t, 10*time.Second, "Redis refuses writes", func() bool {
			return g.post(s.demos[0], "/incr").status == http.StatusServiceUnavailable
		})
		pause(ctx, 1500*time.Millisecond)
		s.mustHaveLogged("MISCONF")
		disk.Free(t)
	})
}

// With always, Redis ends at once rather than break its promise.
func TestDiskFullWithLogAlways(t *testing.T) {
	t.Parallel()
	const fault, promise = "Redis's disk full, so that it ends, appendfsync always", "P1, P8: 503, nothing lost; back after a restart"
	disk := smallDisk(t, fault, promise)
	s := stage(t, fault, promise, setting{redis: withLog(disk.Dir, "always"), logins: true})
	s.run(func(ctx context.Context) {
		disk.Fill(t)
		eventually(t, 10*time.Second, "Redis ends by itself", func() bool {
			conn, err := net.Dial("tcp", s.redis.Addr)
			if err == nil {
				conn.Close()
			}
			return err != nil
		})
		disk.Free(t)
		s.redis.Restart(t)
	})
}
