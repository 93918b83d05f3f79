package lease

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// A lock is a key that holds a token of its own for each lease, and lives as long as the lease. Without
// contention, a lock costs two round trips. Each runs a script that Redis already has.
func TestSpinKey(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		proxy := redistest.NewProxy(t, server)
		p := newProcessOver(t, proxy.Pool(t, 8), patient.Timeout)
		mustUnlock(t, p.mustLock(t, patient)) // from now on Redis has the scripts
		proxy.Forget()
		seen := map[string]bool{}
		for range 20 {
			l := p.mustLock(t, patient)
			token, _ := server.Get(t, "k")
			if token != l.Token() || len(token) < IDLength || seen[token] {
				t.Errorf("token %q", token)
			}
			seen[token] = true
			if ttl, err := redis.Int64(server.Do(t, "PTTL", "k"), nil); err != nil || ttl <= 0 || ttl > patient.Lease.Milliseconds() {
				t.Errorf("the key lives for %d ms: %v", ttl, err)
			}
			mustUnlock(t, l)
			if server.Exists(t, "k") {
				t.Error("Unlock left the key")
			}
		}
		commands := proxy.Commands()
		if len(commands) != 40 {
			t.Errorf("20 times Lock and Unlock sent %q", commands)
		}
		for _, c := range commands {
			if c.Name != "EVALSHA" {
				t.Errorf("a script was sent although Redis has it: %q", c)
			}
		}
	})
}

// Unlock and Extend touch nothing but the lease's own token, whatever the key holds instead.
func TestSpinSparesOthers(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		p := newProcess(t, server)
		for name, tt := range map[string]struct {
			put    func()
			want   error
			spared func() bool
		}{
			"another's token": {
				func() { server.Do(t, "SET", "k", "another", "PX", 50_000) }, ErrLost,
				func() bool {
					ttl, _ := redis.Int64(server.Do(t, "PTTL", "k"), nil)
					holder, _ := server.Get(t, "k")
					return holder == "another" && ttl > 0 && ttl <= 50_000
				}},
			"nothing": {
				func() { server.Do(t, "DEL", "k") }, ErrExpired,
				func() bool { return !server.Exists(t, "k") }},
			"something else": {
				func() { server.Do(t, "DEL", "k"); server.Do(t, "LPUSH", "k", "value") }, ErrUnavailable,
				func() bool { return server.Do(t, "LPUSH", "k", "more") == int64(2) }},
		} {
			for what, call := range map[string]func(l *Lease) error{
				"Extend":      func(l *Lease) error { return l.Extend(t.Context(), time.Hour) },
				"Unlock":      func(l *Lease) error { return l.Unlock(t.Context()) },
				"UnlockAfter": func(l *Lease) error { return l.UnlockAfter(t.Context(), time.Hour) },
			} {
				l := p.mustLock(t, patient)
				tt.put()
				if err := call(l); !errors.Is(err, tt.want) {
					t.Errorf("%s of %s: %v, want %v", what, name, err, tt.want)
				}
				if !tt.spared() {
					t.Errorf("%s changes %s", what, name)
				}
				_ = l.Unlock(t.Context())
				server.Do(t, "DEL", "k")
			}
		}
	})
}

// The lock's key has a value of another type. A caller that wants the lock is told so at once.
func TestSpinKeyOfAnotherType(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		p := newProcess(t, server)
		server.Do(t, "LPUSH", "k", "value")
		_, err := p.lock(t, patient)
		if !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "for k: ") {
			t.Errorf("error %v, want one that names the key and the reason", err)
		}
		p.spin.wantCalls(t, "Take", 1)
		if server.Do(t, "LPUSH", "k", "more") != int64(2) {
			t.Error("the value was changed")
		}
		server.Do(t, "DEL", "k")
	})
}

// The lease of a living holder is extended in Redis. If an administrator deletes the key, or Redis evicts it, the
// holder is notified at the next extension.
func TestSpinIsRenewed(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		p := newProcess(t, server)
		o := patient
		o.Lease = 6 * s // long enough for a machine that stands still for 4 s
		l := p.mustLock(t, o)
		if server.IsReal() {
			eventually(t, "an extension", func() bool { return len(p.spin.Made("Extend")) > 0 })
		} else {
			redistest.Elapse(30 * s)
		}
		if holder, _ := server.Get(t, "k"); holder != l.Token() || isLost(l) {
			t.Errorf("%q has the lock", holder)
		}
		server.Do(t, "DEL", "k")
		if server.IsReal() { // an Extend saves the wait for the renewal
			_ = l.Extend(t.Context(), o.Lease)
		}
		<-l.Lost()
		wantErrLost(t, whyLost(l), "its key is gone")
	})
}

// Extend and UnlockAfter set how long the key lives.
func TestSpinExtendAndCoolDown(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		p := newProcess(t, server)
		l := p.mustLock(t, patient)
		ttl := func() int64 {
			n, _ := redis.Int64(server.Do(t, "PTTL", "k"), nil)
			return n
		}
		if err := l.Extend(t.Context(), time.Hour); err != nil || ttl() < 3_000_000 {
			t.Errorf("Extend: %v, the key lives for %d ms", err, ttl())
		}
		begin := time.Now()
		if err := l.UnlockAfter(t.Context(), s/5); err != nil || ttl() > 200 {
			t.Errorf("UnlockAfter: %v, the key lives for %d ms", err, ttl())
		}
		mustUnlock(t, p.mustLock(t, patient))
		if waited := time.Since(begin); waited < s/5-time.Millisecond {
			t.Errorf("taken again after %v", waited)
		}
	})
}

// A hundred callers of a process wait for a lock that another process holds, and send almost nothing to Redis:
// the head waits for all of them, until it is notified.
func TestWaitingSendsNextToNothing(t *testing.T) {
	withTwo(t, func(t *testing.T, server *redistest.Server, holder, p *peer) {
		l := holder.mustLock(t, slow)
		ctx, cancel := context.WithCancel(t.Context())
		for range 100 {
			go p.group.Lock(ctx, "k", p.spin, patient)
		}
		redistest.Elapse(50 * s)
		if n := len(p.spin.Calls()); n < 100 || n > 210 { // one in 250 to 500 ms
			t.Errorf("%d commands in 50 s", n)
		}
		cancel()
		mustUnlock(t, l)
	})
}

// hasty options are for tests in which Redis does not reply. The lease is so long that no abandoned lock expires
// during a test.
var hasty = Options{Lease: 10 * time.Minute, Wait: time.Minute, Timeout: 2 * s}

// newProxied returns a process that reaches Redis through a proxy. Redis already has the scripts, and there is a
// connection.
func newProxied(t *testing.T, server *redistest.Server, o Options) (*peer, *redistest.Proxy) {
	t.Helper()
	proxy := redistest.NewProxy(t, server)
	p := newProcessOver(t, proxy.Pool(t, 8), o.Timeout)
	l := p.mustLock(t, patient)
	wantError(t, l.Extend(t.Context(), time.Minute), nil)
	mustUnlock(t, l)
	return p, proxy
}

// sequence injects one fault after another, and then none. Probes get no fault.
func sequence(proxy *redistest.Proxy, faults ...redistest.Fault) {
	proxy.Inject(func(c redistest.Command) redistest.Fault {
		if len(faults) == 0 || c.Name == "PING" {
			return redistest.Pass
		}
		fault := faults[0]
		faults = faults[1:]
		return fault
	})
}

// One lost reply is no reason to fail: the command is sent again, and finds its token in Redis.
func TestFaultIsRepaired(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		p, proxy := newProxied(t, server, patient)
		for _, fault := range []redistest.Fault{redistest.DropReply, redistest.DropCommand, redistest.CutReply} {
			sequence(proxy, fault)
			l := p.mustLock(t, patient)
			sequence(proxy, fault)
			wantError(t, l.Extend(t.Context(), time.Minute), nil)
			sequence(proxy, fault)
			// A release that was done and is sent again finds no key.
			if err := l.Unlock(t.Context()); err != nil && !errors.Is(err, ErrExpired) {
				t.Error(err)
			}
			if server.Exists(t, "k") {
				t.Error("the lock is not free")
			}
		}
	})
}

// Redis hangs: it accepts connections and commands, but does not reply. Only Timeout ends a wait. When Redis
// continues, it executes the commands of callers that gave up long before.
func TestPause(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		p := newProcessOver(t, server.Pool(t, 8), hasty.Timeout)
		mustUnlock(t, p.mustLock(t, patient))
		server.Pause(t)
		r := <-wait(t.Context(), p.group, p.spin, hasty)
		if !errors.Is(r.err, ErrUnavailable) || r.took < hasty.Timeout || r.took > hasty.Timeout*5/4 && !server.IsReal() {
			t.Errorf("after %v, with a Timeout of %v: %v", r.took, hasty.Timeout, r.err)
		}
		wantIdle(t, p.group)
		server.Resume(t)
		eventually(t, "the sweep", func() bool { return !server.Exists(t, "k") })
		mustUnlock(t, newProcess(t, server).mustLock(t, patient))
	})
}
