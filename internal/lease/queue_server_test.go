package lease

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// sluggish are options with which asking again does not help.
var sluggish = Options{Lease: time.Minute, Wait: time.Minute, Timeout: 10 * s, Backoff: Backoff{Min: time.Minute, Max: time.Minute}}

// joins makes a process wait for k, until it is in the queue, and returns when it had
// the lock.
func joins(t *testing.T, server *redistest.Server, spin *peer) <-chan time.Time {
	t.Helper()
	before, _ := server.Get(t, queueKey("k"))
	had := make(chan time.Time, 1)
	go func() {
		defer close(had)
		l, err := spin.Lock(t.Context(), "k")
		if err != nil {
			t.Error(err)
			return
		}
		at := time.Now()
		mustUnlock(t, l)
		had <- at
	}()
	eventually(t, "a place in the queue", func() bool {
		places, _ := server.Get(t, queueKey("k"))
		return len(places) > len(before)
	})
	return had
}

// A process that waits is told when its turn has come. It does not find out by asking.
func TestQueuedNotifies(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		holder, waiter := newProcess(t, server, patient), newProcess(t, server, sluggish)
		soon := 0
		for range 20 {
			l := mustLock(t, holder, "k")
			had := joins(t, server, waiter)
			begin := time.Now()
			mustUnlock(t, l)
			if (<-had).Sub(begin) < fallback/4 {
				soon++
			}
		}
		if soon < 15 { // the machine may be busy
			t.Errorf("%d of 20 times it was told at once", soon)
		}
	})
}

// Processes that were killed while they waited cost nothing.
func TestQueuedPassesOverTheDead(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		l := mustLock(t, newProcess(t, server, patient), "k")
		q := newScripts(t, server)
		for i := range 9 {
			q.wantHeld("dead", dead(fmt.Sprint(i)))
		}
		waiter := newProxiedPeer(t, server)
		had := joins(t, server, waiter.spin)
		asked := waiter.proxy.Requests()
		mustUnlock(t, l)
		<-had
		if n := waiter.proxy.Requests() - asked; n > 3 { // a take, a release, and once by chance
			t.Errorf("%d commands to take the lock and give it back", n)
		}
	})
}

// One that hears and does not answer costs a second.
func TestQueuedPassesOverTheSilent(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		l := mustLock(t, newProcess(t, server, patient), "k")
		q := newScripts(t, server)
		silent, _ := q.hears("silent")
		q.wantHeld("silent", silent)
		had := joins(t, server, newProcess(t, server, sluggish))
		begin := time.Now()
		mustUnlock(t, l)
		if took := (<-had).Sub(begin); took < s || took > 5*s {
			t.Errorf("it took %v", took)
		}
	})
}

// A program that knows nothing of the queue deletes the lock. Those in the queue find
// out by themselves, and it, too, has its turn when nobody is in the queue.
func TestQueuedBesideOthers(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		server.Do(t, "SET", "k", newToken("", time.Now()), "NX", "PX", 60_000)
		had := joins(t, server, newProcess(t, server, sluggish))
		begin := time.Now()
		server.Do(t, "DEL", "k")
		if took := (<-had).Sub(begin); took > 10*fallback {
			t.Errorf("it took %v", took)
		}
		eventually(t, "the lock is free", func() bool {
			return server.Do(t, "SET", "k", newToken("", time.Now()), "NX", "PX", 60_000) != nil
		})
	})
}

// Whatever a user of Redis may not do: the lock excludes, everybody has a turn, and
// nothing is left.
func TestQueuedRights(t *testing.T) {
	least := []any{"+ping", "+get", "+set", "+del", "+pexpire", "+eval", "+evalsha"}
	for name, rules := range map[string][]any{
		"all of it":             {"~*", "&latchkey:wake:*", "+publish", "+subscribe", "+pubsub|numsub"},
		"no pubsub":             {"~*", "&latchkey:wake:*", "+publish", "+subscribe"},
		"no channels":           {"~*", "resetchannels", "+publish", "+subscribe"},
		"other channels":        {"~*", "&other:*", "+publish", "+subscribe"},
		"no subscribe":          {"~*", "&*", "+publish"},
		"no publish":            {"~*", "&*", "+subscribe", "+pubsub|numsub"},
		"neither":               {"~*", "resetchannels"},
		"no key of the queue":   {"~k", "&*", "+publish", "+subscribe"},
		"nothing but the least": {"~k", "resetchannels"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Real(t)
			rules := append([]any{"SETUSER", "app", "on", ">pw", "resetkeys", "resetchannels", "-@all"}, append(least, rules...)...)
			server.Do(t, "ACL", rules...)
			n := 0
			var all sync.WaitGroup
			for range 3 {
				spin := newSpin(poolAs(t, server, "app"), patient)
				for range 2 {
					all.Go(func() {
						for range 5 {
							l, err := spin.Lock(t.Context(), "k")
							if err != nil {
								t.Error(err)
								return
							}
							n++
							time.Sleep(time.Millisecond)
							mustUnlock(t, l)
						}
					})
				}
			}
			all.Wait()
			if n != 30 {
				t.Errorf("counted %d of 30", n)
			}
			if keys := server.Keys(t); len(keys) != 0 {
				t.Errorf("left behind: %q", keys)
			}
		})
	}
}

// Redis forgets everything while processes wait, and their connections break.
func TestQueuedAfterRestart(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	l := mustLock(t, newProcess(t, server, patient), "k")
	var all []<-chan time.Time
	for range 3 {
		all = append(all, joins(t, server, newProcess(t, server, patient)))
	}
	server.Do(t, "FLUSHALL")
	server.Do(t, "SCRIPT", "FLUSH")
	server.Do(t, "CLIENT", "KILL", "TYPE", "normal")
	server.Do(t, "CLIENT", "KILL", "TYPE", "pubsub")
	begin := time.Now()
	for _, had := range all {
		if took := (<-had).Sub(begin); took > 10*fallback {
			t.Errorf("it took %v", took)
		}
	}
	if err := l.Unlock(t.Context()); !errors.Is(err, ErrExpired) && !errors.Is(err, ErrLost) {
		t.Error(err)
	}
}

// proxiedPeer is a process whose commands go through a proxy, and whose messages do
// not: a proxy knows none.
type proxiedPeer struct {
	proxy *redistest.Proxy
	spin  *peer
}

func newProxiedPeer(t *testing.T, server *redistest.Server) *proxiedPeer {
	p := &proxiedPeer{proxy: redistest.NewProxy(t, server)}
	p.spin = &peer{
		group:     Group{Notifiers: NewNotifiers(transport.NewRedigo(server.Pool(t, 8), 10*s))},
		algorithm: Spin{Runner: overPool(p.proxy.Pool(t, 8), 10*s)},
		options:   sluggish,
	}
	return p
}
