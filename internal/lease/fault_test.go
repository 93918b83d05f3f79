package lease

import (
	"errors"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// hasty are options for tests in which Redis does not answer. The lease is so long that no lock of
// nobody's ends by itself during a test.
var hasty = Options{Lease: 10 * time.Minute, Wait: time.Minute, Timeout: 2 * s}

// newProxied returns a process whose way to Redis leads through a proxy. Redis knows the scripts
// already, and there is a connection.
func newProxied(t *testing.T, server *redistest.Server, o Options) (*peer, *redistest.Proxy) {
	t.Helper()
	proxy := redistest.NewProxy(t, server)
	p := newProcessOver(t, proxy.Pool(t, 8), o.Timeout)
	l := p.mustLock(t, patient)
	if err := l.Extend(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	mustUnlock(t, l)
	return p, proxy
}

// sequence injects one fault after another into what is no probe, and then none.
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

// One lost reply is no reason to fail: the command is sent again, and finds the token there.
func TestFaultIsRepaired(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		p, proxy := newProxied(t, server, patient)
		for _, fault := range []redistest.Fault{redistest.DropReply, redistest.DropCommand, redistest.CutReply} {
			sequence(proxy, fault)
			l := p.mustLock(t, patient)
			sequence(proxy, fault)
			if err := l.Extend(t.Context(), time.Minute); err != nil {
				t.Error(err)
			}
			sequence(proxy, fault)
			// A release that was done, and sent again, finds the key empty.
			if err := l.Unlock(t.Context()); err != nil && !errors.Is(err, ErrExpired) {
				t.Error(err)
			}
			if server.Exists(t, "k") {
				t.Error("the lock is not free")
			}
		}
	})
}

// Redis is gone, which is known at once; and back, which works at once. It has forgotten the lock and
// the scripts.
func TestOutage(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		p := newProcess(t, server)
		l := p.mustLock(t, patient)
		server.Restart(t)
		if err := l.Unlock(t.Context()); !errors.Is(err, ErrExpired) {
			t.Errorf("Unlock: %v", err)
		}
		l = p.mustLock(t, patient)
		server.Stop(t)
		begin := time.Now()
		if _, err := p.group.Lock(t.Context(), "another", p.spin, patient); !errors.Is(err, ErrUnavailable) {
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
		wantIdle(t, p.group)
		server.Restart(t)
		mustUnlock(t, p.mustLock(t, patient))
	})
}

// Redis hangs: connections and commands are accepted, but nobody answers. Only Timeout ends a wait.
// When Redis goes on, it does what it was told by callers that have long given up.
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
