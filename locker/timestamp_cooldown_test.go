package locker

import (
	"errors"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// After UnlockAfter the lock stays shut, for processes and peers, until the moment
// that its value tells.
func TestTimestampUnlockAfter(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		for name, delay := range map[string]time.Duration{"longer than the lease": time.Hour, "shorter": 20 * s} {
			l := mustTake(t, newTimestamp(t, server, patient), "k")
			before := time.Now().Truncate(time.Millisecond)
			if err := l.UnlockAfter(t.Context(), delay); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if end := valueOf(t, server, "k"); end.Before(before.Add(delay)) || end.After(time.Now().Add(delay)) {
				t.Errorf("%s: the value is %v, want %v after %v", name, end, delay, before)
			}
			p := newPeer(t, server, "k")
			if p.take() {
				t.Errorf("%s: a peer took the lock at once", name)
			}
			if err := wantHeld(t, server, "k"); !errors.As(err, new(*HeldError)) {
				t.Errorf("%s: %v, want an error that tells who left it shut", name, err)
			}
			if ttl, _ := redis.Int64(server.Do(t, "PTTL", "k"), nil); ttl < delay.Milliseconds() {
				t.Errorf("%s: the key vanishes in %d ms", name, ttl)
			}
			letPass(t, server, "k", delay+s)
			if !p.take() {
				t.Errorf("%s: a peer did not get it afterwards", name)
			}
			server.Do(t, "FLUSHDB")
		}
	})
}

// A lock that is another's is not shut for longer.
func TestTimestampUnlockAfterLoss(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		l := mustTake(t, newTimestamp(t, server, patient), "k")
		server.Do(t, "DEL", "k")
		p := newPeer(t, server, "k")
		p.lease += s
		p.take()
		if err := l.UnlockAfter(t.Context(), time.Hour); !errors.Is(err, ErrLost) {
			t.Errorf("UnlockAfter: %v", err)
		}
		if value, _ := server.Get(t, "k"); value != p.value {
			t.Errorf("the peer's value %q became %q", p.value, value)
		}
	})
}
