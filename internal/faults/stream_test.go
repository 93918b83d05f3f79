package faults

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
	"github.com/a2139e8d/latchkey/internal/redistest"
)

// Every other command is lost, or its reply, and with it the connection. A request without a response proves
// nothing about its session. With fewer losses the watch would hardly notice, since round trips are repeated.
func TestStreamsOverABadNetwork(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	var proxies []*redistest.Proxy
	a := stageStreams(t, "commands and replies are lost", r, func() string {
		p := redistest.NewProxy(t, r)
		proxies = append(proxies, p)
		return p.Addr
	})
	var lost atomic.Int32
	a.through(func(under func()) {
		for i, p := range proxies {
			random := chance(uint64(i))
			p.Inject(func(redistest.Command) redistest.Fault {
				fault := redistest.Pass
				if random.IntN(2) == 0 {
					fault = []redistest.Fault{redistest.DropCommand, redistest.DropReply, redistest.CutReply}[random.IntN(3)]
					lost.Add(1)
				}
				return fault
			})
		}
		under()
		pause(t.Context(), unlessShort(8*time.Second, 4*time.Second))
		for _, p := range proxies {
			p.Inject(nil)
		}
	})
	happened(t, "a command was lost", int(lost.Load()), 10)
	a.seen += fmt.Sprintf("; %d commands or replies lost", lost.Load())
}

// Redis does not reply for ten seconds. No stream ends meanwhile. A stream whose session was ended just before,
// or has expired meanwhile, ends when Redis replies again.
func TestStreamsWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	a := stageStreams(t, "Redis paused for 10 s", r, func() string { return r.Addr })
	a.through(func(under func()) {
		a.ending.Wait()
		r.Pause(t)
		pause(t.Context(), 500*time.Millisecond) // so that all earlier replies of Redis have arrived
		before, _ := a.Counts()
		under()
		pause(t.Context(), 9500*time.Millisecond)
		if after, _ := a.Counts(); after != before {
			t.Errorf("%d streams have ended while Redis did not reply", after-before)
		}
		r.Resume(t)
	})
}

// A process is stopped for five seconds, by SIGSTOP. The streams of others end meanwhile, and its own end when it
// continues.
func TestStreamsOfAStoppedProcess(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	a := stageStreams(t, "a process stopped for 5 s", r, func() string { return r.Addr })
	a.through(func(under func()) {
		a.ending.Wait()
		stopped := a.demos[1]
		stopped.Signal(t, syscall.SIGSTOP)
		a.enders = a.demos[:1]
		under()
		pause(t.Context(), 5*time.Second)
		stopped.Signal(t, syscall.SIGCONT)
	})
}

// First the address leads to a replica that lags behind. It does not know the newest sessions, but no stream
// ends. Then the master dies, and the replica, which has received everything by now, takes its place.
func TestStreamsThroughAFailover(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t, "--repl-diskless-sync", "no", "--repl-ping-replica-period", "1")
	f := &failover{}
	a := stageStreams(t, "a lagging replica, then a failover", r, func() string {
		w := rig.NewWire(t, r.Addr)
		f.addresses = append(f.addresses, w)
		return w.Addr
	})
	f.scene, f.link = a.scene, rig.NewWire(t, r.Addr)
	f.replica = rig.Replica(t, f.link.Addr)
	f.lag()
	a.through(func(under func()) {
		a.ending.Wait()
		a.awaitEnded(a.doomed / 3) // all that must end so far
		f.turnTo(f.replica)
		pause(t.Context(), 500*time.Millisecond) // so that all earlier replies of the master have arrived
		before, _ := a.Counts()
		pause(t.Context(), 3*time.Second)
		if after, _ := a.Counts(); after != before {
			t.Errorf("%d streams have ended because of the replies of a replica", after-before)
		}
		f.turnTo(r)
		f.link.Heal()
		rig.Follow(t, f.replica, r)
		heard(t, r, f.replica)
		f.kill()
		under()
		pause(t.Context(), time.Second)
		f.promote()
		f.redis = f.replica
		f.turnTo(f.replica)
	})
}

// turnTo makes all addresses lead to a server, at once.
func (f *failover) turnTo(r *redistest.Server) {
	f.lead(r)
	for _, address := range f.addresses {
		address.Drop()
	}
}

// Slots move to other masters, with the sessions and their marks in them.
func TestStreamsWhileSlotsMove(t *testing.T) {
	eachClient(t, func(t *testing.T, client string) {
		s := stageCluster(t, client, "streams, while slots move", streamPromise, setting{flags: []string{"-max-sessions", "2"}, lease: patient, exchange: patient})
		a := s.audience(s.startApp(client, "-ttl", briefly.String()))
		a.through(func(under func()) {
			under()
			s.moveAll(unlessShort(3, 1))
		})
	})
}
