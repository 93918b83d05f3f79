package locker

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// A peer has the lock. A Go process waits, and has it when the peer has deleted
// the key.
func TestTimestampWaitsForPeer(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		p := newPeer(t, server, "k")
		if !p.take() {
			t.Fatal("the peer does not get a free lock")
		}
		if err := wantHeld(t, server, "k"); errors.As(err, new(*HeldError)) {
			t.Errorf("%v: but a peer does not say who it is", err)
		}
		timestamp, proxy := newProxiedTimestamp(t, server, patient)
		got := make(chan *Lease)
		go func() {
			l, err := timestamp.Lock(t.Context(), "k")
			if err != nil {
				t.Error(err)
			}
			got <- l
		}()
		eventually(t, "several tries", func() bool { return proxy.Requests() >= 3 })
		select {
		case <-got:
			t.Error("both have the lock")
		default:
		}
		if value, _ := server.Get(t, "k"); value != p.value {
			t.Errorf("waiting changed the peer's value %q to %q", p.value, value)
		}
		p.del()
		if l := <-got; l != nil {
			mustUnlock(t, l)
		}
	})
}

// A Go process has the lock. A peer sees a time to come, and has it after Unlock.
func TestTimestampKeepsPeerOut(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		before := time.Now()
		l := mustTake(t, newTimestamp(t, server, patient), "k")
		after := time.Now()
		p := newPeer(t, server, "k")
		p.setnx()
		if p.holds {
			t.Fatal("SETNX took what is held")
		}
		if p.get() != nil {
			t.Errorf("the peer takes %q for stale", p.reply)
		}
		// Redis cuts the time to whole milliseconds.
		end := valueOf(t, server, "k")
		if end.Before(before.Add(patient.Lease-time.Millisecond)) || end.After(after.Add(patient.Lease)) {
			t.Errorf("the value is %v, want the end of the lease", end)
		}
		mustUnlock(t, l)
		if !p.take() {
			t.Error("the peer does not get the lock after Unlock")
		}
	})
}

// The peer died. Its lock is free when its time has come, not earlier, and waiting
// is all that it takes.
func TestTimestampAfterDeadPeer(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		p := newPeer(t, server, "k")
		p.lease = 300 * time.Millisecond
		p.setnx() // and not even an EXPIRE
		end := valueOf(t, server, "k")
		l := mustTake(t, newTimestamp(t, server, patient), "k")
		if early := time.Until(end); early >= 0 {
			t.Errorf("the lock was taken %v early, from a peer that might live", early)
		}
		mustUnlock(t, l)
	})
}

// The Go process died. A peer takes over what it left, and should the dead one
// live after all, it learns that.
func TestTimestampPeerAfterDeadProcess(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		l := mustTake(t, newTimestamp(t, server, patient), "k")
		letPass(t, server, "k", time.Hour)
		if p := newPeer(t, server, "k"); !p.take() {
			t.Errorf("the peer does not take over %q", p.reply)
		}
		wantHeld(t, server, "k")
		wantLost(t, server, l)
	})
}

// Peers and processes count with a variable that only the lock guards. Nobody
// gives it back: it becomes stale each time, so that they compete to take it over.
func TestTimestampExcludes(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		const each, times = 3, 20
		n := 0
		count := func() {
			read := n
			runtime.Gosched() // an invitation to all that are not kept out
			n = read + 1
			server.Do(t, "SET", "k", longAgo)
		}
		var all sync.WaitGroup
		for range each {
			p, c := newPeer(t, server, "k"), newContender(t, server, "k")
			all.Go(func() {
				for range times {
					p.wait()
					count()
					p.holds = false
				}
			})
			all.Go(func() {
				for range times {
					c.wait()
					count()
					c.holds = false
				}
			})
		}
		all.Wait()
		if n != 2*each*times {
			t.Errorf("counted %d of %d", n, 2*each*times)
		}
	})
}
