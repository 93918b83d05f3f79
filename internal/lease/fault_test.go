package lease

import (
	"errors"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// hasty are options for tests in which Redis does not answer. The lease is so long
// that no lock of nobody's ends by itself during a test.
var hasty = Options{Lease: 10 * time.Minute, Wait: 10 * s, Timeout: 300 * time.Millisecond}

// sequence injects one fault after another, and then none.
func sequence(proxy *redistest.Proxy, faults ...redistest.Fault) {
	proxy.Inject(func(redistest.Command) redistest.Fault {
		if len(faults) == 0 {
			return redistest.Pass
		}
		fault := faults[0]
		faults = faults[1:]
		return fault
	})
}

// The network fails while a lock is taken. Either it was taken all the same, or
// the caller is told so, and then it is free: at once, or soon after the command
// that was late.
func TestFaultsOnTake(t *testing.T) {
	for name, faults := range map[string][]redistest.Fault{
		"DropReply":              {redistest.DropReply},
		"DropReply, twice":       {redistest.DropReply, redistest.DropReply},
		"DropReply, four times":  {redistest.DropReply, redistest.DropReply, redistest.DropReply, redistest.DropReply},
		"DropCommand":            {redistest.DropCommand},
		"DropCommand, twice":     {redistest.DropCommand, redistest.DropCommand},
		"CutReply":               {redistest.CutReply},
		"CutReply, twice":        {redistest.CutReply, redistest.CutReply},
		"Hang":                   {redistest.Hang},
		"Hang, also when swept":  {redistest.Hang, redistest.Hang},
		"HangCommand":            {redistest.HangCommand},
		"DropReply, HangCommand": {redistest.DropReply, redistest.HangCommand},
		"HangCommand, DropReply": {redistest.HangCommand, redistest.DropReply},
	} {
		t.Run(name, func(t *testing.T) {
			onServers(t, func(t *testing.T, server *redistest.Server) {
				spin, proxy := newProxied(t, server, hasty)
				sequence(proxy, faults...)
				l, err := spin.Lock(t.Context(), "k")
				switch {
				case err == nil:
					if holder, _ := server.Get(t, "k"); holder != l.token {
						t.Errorf("the key holds %q, not the lease's token", holder)
					}
					mustUnlock(t, l)
				case !errors.Is(err, ErrUnavailable):
					t.Error(err)
				default:
					proxy.Release() // now what was held back takes effect
					eventually(t, "the sweep", func() bool { return !server.Exists(t, "k") })
				}
				wantIdle(t, &spin.group)
			})
		})
	}
}

// The reply is lost, and then Redis cannot even be reached to ask again. That the
// second try certainly did nothing says nothing about the first.
func TestFaultAndThenNoConnection(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		teach(t, server)
		proxy := redistest.NewProxy(t, server)
		sequence(proxy, redistest.DropReply)
		dials := 0 // one at a time
		pool := proxy.Pool(t, 1)
		dial := pool.Dial
		pool.Dial = func() (redis.Conn, error) {
			if dials++; dials == 2 {
				return nil, errors.New("no route to host")
			}
			return dial()
		}
		if _, err := newSpin(pool, hasty).Lock(t.Context(), "k"); !errors.Is(err, ErrUnavailable) {
			t.Error(err)
		}
		eventually(t, "the sweep", func() bool { return !server.Exists(t, "k") })
	})
}

// One lost reply is no reason to fail: the command is sent again, and finds the
// token there.
func TestFaultIsRepaired(t *testing.T) {
	for name, fault := range map[string]redistest.Fault{
		"DropReply":   redistest.DropReply,
		"DropCommand": redistest.DropCommand,
		"CutReply":    redistest.CutReply,
	} {
		t.Run(name, func(t *testing.T) {
			onServers(t, func(t *testing.T, server *redistest.Server) {
				spin, proxy := newProxied(t, server, patient)
				sequence(proxy, fault)
				l := mustLock(t, spin, "k")
				sequence(proxy, fault)
				mustExtend(t, l)
				sequence(proxy, fault)
				// A release that was done, and sent again, finds the key empty.
				if err := l.Unlock(t.Context()); err != nil && !errors.Is(err, ErrExpired) {
					t.Error(err)
				}
				if server.Exists(t, "k") {
					t.Error("the lock is not free")
				}
				mustUnlock(t, mustLock(t, spin, "k"))
			})
		})
	}
}

// A release that comes late, when its sender has given up and another has the lock,
// does nothing.
func TestFaultLateRelease(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		o := patient
		o.Timeout = s
		spin, proxy := newProxied(t, server, o)
		l := mustLock(t, spin, "k")
		sequence(proxy, redistest.HangCommand)
		if err := l.Unlock(t.Context()); !errors.Is(err, ErrUnavailable) {
			t.Errorf("Unlock: %v", err)
		}
		wantIdle(t, &spin.group)
		server.Do(t, "DEL", "k")
		other := mustLock(t, newProcess(t, server, patient), "k")
		proxy.Release()
		mustUnlock(t, other)
	})
}

// Scripts vanish from Redis at any time: that costs a round trip, and nothing else.
func TestScriptFlush(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			spin := newProcess(t, server, patient)
			for range 100 {
				l, err := spin.Lock(t.Context(), "k")
				if err != nil {
					t.Error(err)
					return
				}
				if err := l.Extend(t.Context(), time.Minute); err != nil {
					t.Error(err)
				}
				mustUnlock(t, l)
			}
		}()
		for {
			select {
			case <-done:
				return
			default:
				server.Do(t, "SCRIPT", "FLUSH")
			}
		}
	})
}
