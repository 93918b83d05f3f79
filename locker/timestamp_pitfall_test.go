package locker

import (
	"errors"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// A loser sees the lock stale, and hesitates. A process takes it over. The loser's
// GETSET tells it that it came late, but has changed the winner's value.
func TestTimestampLoserChangesValue(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		for name, lease := range map[string]time.Duration{"longer": time.Hour, "shorter": 20 * s} {
			server.Do(t, "SET", "k", longAgo)
			p := newPeer(t, server, "k")
			p.lease = lease
			p.setnx()
			p.get()
			l := mustTake(t, newTimestamp(t, server, patient), "k")
			p.getset()
			if value, _ := server.Get(t, "k"); p.holds || value != p.value {
				t.Fatalf("%s lease: the peer holds the lock: %v; the value is %q", name, p.holds, value)
			}
			if err := wantHeld(t, server, "k"); !errors.As(err, new(*HeldError)) {
				t.Errorf("%s lease: %v: but the holder is known", name, err)
			}
			mustExtend(t, l)
			if left := time.Until(valueOf(t, server, "k")); left < 30*s || left > time.Minute {
				t.Errorf("%s lease: Extend did not repair the value: %v are left", name, left)
			}
			p.getset() // as a second loser would, who hesitated even longer
			mustUnlock(t, l)
			if keys := server.Keys(t); len(keys) != 0 {
				t.Errorf("%s lease: left behind: %q", name, keys)
			}
		}
	})
}

// The other way round, a process comes between the GET and GETSET of a peer that
// was first. It does not see the lock stale any more.
func TestTimestampComesLate(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		server.Do(t, "SET", "k", longAgo)
		p := newPeer(t, server, "k")
		p.setnx()
		p.get()
		p.getset()
		wantHeld(t, server, "k")
		if value, _ := server.Get(t, "k"); !p.holds || value != p.value {
			t.Errorf("the peer wrote %q, now it is %q", p.value, value)
		}
	})
}

// A peer that finds no value on its second look starts again: what it did not get
// was given back, which is not to say that it is stale.
func TestTimestampGivenBackIsNotStale(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		timestamp := newTimestamp(t, server, patient)
		l := mustTake(t, timestamp, "k")
		p := newPeer(t, server, "k")
		p.setnx()
		mustUnlock(t, l)
		next := p.get()
		l = mustTake(t, timestamp, "k")
		if next(); p.holds {
			t.Error("the peer took what a process had taken meanwhile")
		}
		mustUnlock(t, l)
	})
}

// A stale lock vanishes between a peer's GET and GETSET: a process took it over
// and gave it back. The peer has won then, since it found none to lose against.
func TestTimestampVanishes(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		server.Do(t, "SET", "k", longAgo)
		timestamp := newTimestamp(t, server, patient)
		p := newPeer(t, server, "k")
		p.setnx()
		p.get()
		mustUnlock(t, mustTake(t, timestamp, "k"))
		p.getset()
		if p.nilGetset != 1 || !p.holds {
			t.Errorf("GETSET returned %q", p.reply)
		}
		wantHeld(t, server, "k")
		p.del()
		mustUnlock(t, mustTake(t, timestamp, "k"))
	})
}

// What a process leaves when it dies does not vanish at once, so peers seldom have
// to find out what that means.
func TestTimestampStaleStays(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		l := mustTake(t, newTimestamp(t, server, patient), "k")
		mustExtend(t, l)
		for _, key := range []string{"k", noteKey("k")} {
			ttl, _ := redis.Int64(server.Do(t, "PTTL", key), nil)
			if d := time.Duration(ttl) * time.Millisecond; d < patient.Lease*3/2 || d > 2*patient.Lease {
				t.Errorf("%s stays for %v, want twice the lease", key, d)
			}
		}
		letPass(t, server, "k", patient.Lease+s)
		p := newPeer(t, server, "k")
		p.setnx()
		p.get()
		p.getset()
		if !p.holds || p.nilGet+p.nilGetset > 0 {
			t.Errorf("the peer holds the lock: %v, and met %d times no value", p.holds, p.nilGet+p.nilGetset)
		}
		wantLost(t, server, l)
	})
}

// Two who delete a stale lock could do that one after the other. So nobody does,
// not even the one whose it was.
func TestTimestampStaleIsNotDeleted(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		l := mustTake(t, newTimestamp(t, server, patient), "k")
		letPass(t, server, "k", time.Hour)
		stale, _ := server.Get(t, "k")
		if err := l.Extend(t.Context(), time.Hour); !errors.Is(err, ErrExpired) {
			t.Errorf("Extend: %v, want %v", err, ErrExpired)
		}
		if err := l.Unlock(t.Context()); !errors.Is(err, ErrExpired) {
			t.Errorf("Unlock: %v, want %v", err, ErrExpired)
		}
		if value, _ := server.Get(t, "k"); value != stale {
			t.Errorf("%q became %q", stale, value)
		}
	})
}
