package lease

import (
	"errors"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
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

// The network fails while a lock is taken. Either it was taken all the same, or the caller is told
// so, and then it is free: at once, or soon after the command that was late.
func TestFaultsOnTake(t *testing.T) {
	for name, faults := range map[string][]redistest.Fault{
		"DropReply, four times":  {redistest.DropReply, redistest.DropReply, redistest.DropReply, redistest.DropReply},
		"DropCommand, twice":     {redistest.DropCommand, redistest.DropCommand},
		"CutReply, twice":        {redistest.CutReply, redistest.CutReply},
		"Hang, also when swept":  {redistest.Hang, redistest.Hang},
		"HangCommand":            {redistest.HangCommand},
		"DropReply, HangCommand": {redistest.DropReply, redistest.HangCommand},
		"HangCommand, DropReply": {redistest.HangCommand, redistest.DropReply},
	} {
		t.Run(name, func(t *testing.T) {
			inMemory(t, func(t *testing.T, server *redistest.Server) {
				p, proxy := newProxied(t, server, hasty)
				sequence(proxy, faults...)
				l, err := p.lock(t, hasty)
				switch {
				case err == nil:
					if holder, _ := server.Get(t, "k"); holder != l.Token() {
						t.Errorf("the key holds %q, not the lease's token", holder)
					}
					mustUnlock(t, l)
				case !errors.Is(err, ErrUnavailable):
					t.Error(err)
				default:
					proxy.Release() // now what was held back takes effect
					eventually(t, "the sweep", func() bool { return !server.Exists(t, "k") })
				}
				wantIdle(t, p.group)
				redistest.Elapse(time.Hour)
			})
		})
	}
}

// The reply is lost, and then Redis cannot even be reached to ask again. That the second try
// certainly did nothing says nothing about the first.
func TestFaultAndThenNoConnection(t *testing.T) {
	inMemory(t, func(t *testing.T, server *redistest.Server) {
		mustUnlock(t, newProcess(t, server).mustLock(t, patient))
		proxy := redistest.NewProxy(t, server)
		pool, dials := proxy.Pool(t, 1), 0
		dial := pool.Dial
		pool.Dial = func() (redis.Conn, error) {
			if dials++; dials == 2 {
				return nil, errors.New("no route to host")
			}
			return dial()
		}
		p := newProcessOver(t, pool, patient.Timeout)
		sequence(proxy, redistest.DropReply)
		if _, err := p.lock(t, hasty); !errors.Is(err, ErrUnavailable) {
			t.Error(err)
		}
		eventually(t, "the sweep", func() bool { return !server.Exists(t, "k") })
		redistest.Elapse(time.Hour)
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

// A release that comes late, when its sender has given up and another has the lock, does nothing.
func TestFaultLateRelease(t *testing.T) {
	inMemory(t, func(t *testing.T, server *redistest.Server) {
		p, proxy := newProxied(t, server, hasty)
		l := p.mustLock(t, hasty)
		sequence(proxy, redistest.HangCommand)
		if err := l.Unlock(t.Context()); !errors.Is(err, ErrUnavailable) {
			t.Errorf("Unlock: %v", err)
		}
		wantIdle(t, p.group)
		server.Do(t, "DEL", "k")
		other := newProcess(t, server).mustLock(t, patient)
		proxy.Release()
		mustUnlock(t, other)
	})
}

// Scripts vanish from Redis at any time: that costs a round trip, and nothing else.
func TestScriptFlush(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		p := newProcess(t, server)
		for i := range 30 {
			flush := func(when int) {
				if i%3 == when {
					server.Do(t, "SCRIPT", "FLUSH")
				}
			}
			flush(0)
			l := p.mustLock(t, patient)
			flush(1)
			if err := l.Extend(t.Context(), time.Minute); err != nil {
				t.Error(err)
			}
			flush(2)
			mustUnlock(t, l)
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
