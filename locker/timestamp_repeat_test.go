package locker

import (
	"errors"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// An uncontended lock costs two round trips, and half of them at the start. Both
// are scripts that Redis knows already.
func TestTimestampRoundTrips(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		timestamp, proxy := newProxiedTimestamp(t, server, patient)
		for _, command := range remains {
			server.Do(t, "FLUSHDB")
			server.Do(t, command[0].(string), command[1:]...)
			proxy.Forget()
			l := mustTake(t, timestamp, "k")
			if n := proxy.Requests(); n != 1 {
				t.Errorf("%q: Lock sent %d commands", command, n)
			}
			mustUnlock(t, l)
			commands := proxy.Commands()
			if len(commands) != 2 {
				t.Errorf("%q: Lock and Unlock sent %q", command, commands)
			}
			for _, c := range commands {
				if c.Name != "EVALSHA" {
					t.Errorf("%q: %q", command, c)
				}
			}
		}
	})
}

// One lost reply is no reason to fail: the command is sent again, and finds what it
// did the first time.
func TestTimestampFaultIsRepaired(t *testing.T) {
	for name, fault := range map[string]redistest.Fault{
		"DropReply":   redistest.DropReply,
		"DropCommand": redistest.DropCommand,
		"CutReply":    redistest.CutReply,
	} {
		t.Run(name, func(t *testing.T) {
			onServers(t, func(t *testing.T, server *redistest.Server) {
				timestamp, proxy := newProxiedTimestamp(t, server, patient)
				for _, command := range remains {
					server.Do(t, "FLUSHDB")
					server.Do(t, command[0].(string), command[1:]...)
					sequence(proxy, fault)
					l := mustTake(t, timestamp, "k")
					sequence(proxy, fault)
					mustExtend(t, l)
					sequence(proxy, fault)
					// A release that was done, and sent again, finds the key empty.
					if err := l.Unlock(t.Context()); err != nil && !errors.Is(err, ErrExpired) {
						t.Error(err)
					}
					if keys := server.Keys(t); len(keys) != 0 {
						t.Errorf("left behind: %q", keys)
					}

					l = mustTake(t, timestamp, "k")
					sequence(proxy, fault)
					if err := l.UnlockAfter(t.Context(), time.Hour); err != nil {
						t.Errorf("UnlockAfter: %v", err)
					}
					if left := time.Until(valueOf(t, server, "k")); left < 30*time.Minute {
						t.Errorf("UnlockAfter left it shut for %v", left)
					}
				}
			})
		})
	}
}

// The reply to a take is lost. Before the command comes again, a peer that had seen
// the lock stale changes the value. The process has won all the same.
func TestTimestampRepeatAfterChange(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		server.Do(t, "SET", "k", longAgo)
		p := newPeer(t, server, "k")
		p.lease += s
		p.setnx()
		p.get()
		c := newContender(t, server, "k")
		c.take()
		p.getset()
		if c.take(); !c.holds || p.holds {
			t.Errorf("the process holds the lock: %v; the peer: %v", c.holds, p.holds)
		}
		if value, _ := server.Get(t, "k"); value == p.value {
			t.Error("the second take left the peer's value")
		}
		if c.release(); c.lost {
			t.Error("Release says that it was lost")
		}
	})
}

// The reply to a take is lost, and the lease ran out before it comes again. Then
// it is a new try, which finds a stale lock.
func TestTimestampRepeatAfterEnd(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		c, other := newContender(t, server, "k"), newContender(t, server, "k")
		c.take()
		letPass(t, server, "k", time.Hour)
		if c.take(); !c.holds {
			t.Error("a stale lock was not taken over")
		}
		letPass(t, server, "k", time.Hour)
		other.take()
		if c.take(); c.holds || !other.holds {
			t.Errorf("both hold the lock: %v, %v", c.holds, other.holds)
		}
	})
}

// All replies are lost, so nobody knows who has the lock, until it has been swept.
func TestTimestampSweep(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		timestamp, proxy := newProxiedTimestamp(t, server, hasty)
		sequence(proxy, redistest.DropReply, redistest.DropReply, redistest.DropReply)
		if _, err := timestamp.Lock(t.Context(), "k"); !errors.Is(err, ErrUnavailable) {
			t.Error(err)
		}
		eventually(t, "the sweep", func() bool { return len(server.Keys(t)) == 0 })
		mustUnlock(t, mustTake(t, timestamp, "k"))
	})
}
