package lease

import (
	"errors"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

func TestRestart(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		spin := newSpin(server.Pool(t, 1), patient)
		mustUnlock(t, mustLock(t, spin, "k"))
		server.Restart(t)
		l := mustLock(t, spin, "k")
		server.Restart(t) // which forgets the lock, and the scripts
		if err := l.Unlock(t.Context()); !errors.Is(err, ErrExpired) {
			t.Errorf("Unlock: %v", err)
		}
		mustUnlock(t, mustLock(t, spin, "k"))
	})
}

// Redis is gone, which is known at once; and back, which works at once.
func TestOutage(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		spin := newProcess(t, server, patient)
		l := mustLock(t, spin, "held")
		server.Stop(t)
		begin := time.Now()
		if _, err := spin.Lock(t.Context(), "k"); !errors.Is(err, ErrUnavailable) {
			t.Errorf("Lock: %v", err)
		}
		if err := l.Extend(t.Context(), s); !errors.Is(err, ErrUnavailable) {
			t.Errorf("Extend: %v", err)
		}
		if err := l.Unlock(t.Context()); !errors.Is(err, ErrUnavailable) {
			t.Errorf("Unlock: %v", err)
		}
		if took := time.Since(begin); took > patient.Timeout {
			t.Errorf("three refusals took %v", took)
		}
		wantIdle(t, &spin.group)
		server.Restart(t)
		mustUnlock(t, mustLock(t, spin, "k"))
	})
}

// A holder that cannot reach Redis for the rest of its lease has lost the lock, and
// is told so. Nobody else may have it before.
func TestOutageLosesLock(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		o := patient
		o.Lease = 1500 * time.Millisecond
		spin := newProcess(t, server, o)
		begin := time.Now()
		l := mustLock(t, spin, "k")
		server.Stop(t)
		<-l.Lost()
		if held := time.Since(begin); held < o.Lease {
			t.Errorf("given up after %v, before the lease was over", held)
		}
	})
}

// Redis hangs: the kernel accepts connections and commands, but nobody answers. When
// it goes on, it does what it was told by callers that have long given up.
func TestPause(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	teach(t, server)
	// As from redis.Dial without options: nothing but Options.Timeout ends a wait.
	pool := &redis.Pool{Dial: func() (redis.Conn, error) { return redis.Dial("tcp", server.Addr) }}
	defer pool.Close()
	spin := newSpin(pool, hasty)
	server.Pause(t)
	begin := time.Now()
	_, err := spin.Lock(t.Context(), "k")
	if !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
	if took := time.Since(begin); took < hasty.Timeout || took > patient.Timeout {
		t.Errorf("Lock returned after %v, with a Timeout of %v", took, hasty.Timeout)
	}
	wantIdle(t, &spin.group)
	server.Resume(t)
	eventually(t, "the sweep", func() bool { return !server.Exists(t, "k") })
	mustUnlock(t, mustLock(t, newProcess(t, server, patient), "k"))
}
