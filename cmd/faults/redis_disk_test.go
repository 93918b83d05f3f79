package faults

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/cmd/faults/rig"
)

// cannotMount is why there is no disk to fill up.
const cannotMount = "this user may not mount a disk"

// There is no room for Redis's log. With everysec Redis goes on to read, refuses writes,
// and tries by itself again.
func TestDiskFullWithLogEverySecond(t *testing.T) {
	t.Parallel()
	const fault, promise = "disk full for 1.5 s, appendfsync everysec", "P8: 503, nothing lost, back by itself"
	disk := rig.NewDisk(t)
	if disk == nil {
		note(row{fault: fault, promise: promise, undone: cannotMount})
		return
	}
	s := stage(t, fault, promise,
		setting{redis: logged(disk.Dir, "everysec"), logins: true})
	s.suffer(func(ctx context.Context) {
		g := s.guest(s.demos[0])
		disk.Fill(t)
		eventually(t, 10*time.Second, "Redis refuses writes", func() bool {
			return g.post(s.demos[0], "/incr").status == http.StatusServiceUnavailable
		})
		pause(ctx, 1500*time.Millisecond)
		s.mustHaveMet("MISCONF")
		disk.Free(t)
	})
}

// With always, Redis has no other way to keep its word than to end at once.
func TestDiskFullWithLogAlways(t *testing.T) {
	t.Parallel()
	const fault, promise = "disk full, so that Redis ends, appendfsync always", "P1, P8: 503, nothing lost; back after a restart"
	disk := rig.NewDisk(t)
	if disk == nil {
		note(row{fault: fault, promise: promise, undone: cannotMount})
		return
	}
	s := stage(t, fault, promise,
		setting{redis: logged(disk.Dir, "always"), logins: true})
	s.suffer(func(ctx context.Context) {
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
