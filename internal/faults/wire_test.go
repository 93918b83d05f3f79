package faults

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
	"github.com/a2139e8d/latchkey/internal/redistest"
)

// both makes trouble on all wires, in both directions.
func (s *scene) both(trouble rig.Trouble) {
	for _, w := range s.wires {
		up, down := trouble, trouble
		w.Trouble(&up, &down)
	}
}

func (s *scene) heal() {
	for _, w := range s.wires {
		w.Heal()
	}
}

// The wire is slow. The delay is less than the timeout, so that nothing may fail; or about as long, so that some
// replies come in time and others do not; or each byte comes alone.
func TestWireSlow(t *testing.T) {
	for _, slow := range []struct {
		how, promise string
		trouble      rig.Trouble
		refuses      bool
	}{
		{"the wire is slow by 0.3 s ± 0.1 s each way", "P1, P8: all requests are answered", rig.Trouble{Latency: 300 * time.Millisecond, Jitter: 100 * time.Millisecond}, false},
		{"the wire is slow by 1 s ± 0.5 s each way", "P8: nothing lost, recovers by itself", rig.Trouble{Latency: time.Second, Jitter: 500 * time.Millisecond}, true},
		{"the wire carries one byte at a time, both ways", "P1: not noticed", rig.Trouble{Bytewise: true}, false},
	} {
		t.Run(slow.how, func(t *testing.T) {
			with := setting{apart: slow.refuses, wired: true, logins: true}
			if !slow.refuses {
				with.lease = patient
			}
			s := stage(t, slow.how, slow.promise, with)
			s.run(func(ctx context.Context) {
				s.both(slow.trouble)
				pause(ctx, unlessShort(5*time.Second, 3*time.Second))
				s.heal()
			})
			if !slow.refuses {
				s.allAnswered()
			} else {
				happened(t, "a reply came too late", s.summary().Silent, 1)
			}
		})
	}
}

// All connections of all demos are broken, and new ones are refused: for a moment, or for longer than a lease, so
// that other requests may have taken the sessions of holders. A site without Redis responds 503 at once to
// requests with a session.
func TestWireCut(t *testing.T) {
	for what, length := range map[string]time.Duration{"half a lease": lease / 2, "2.5 leases": 5 * lease / 2} {
		t.Run(what, func(t *testing.T) {
			s := stage(t, "connections cut, and new connections refused, for "+what, "P3, P8: 503 at once, recovers by itself",
				setting{apart: length > lease, wired: true, logins: true})
			g := s.guest(s.demos[0])
			s.run(func(ctx context.Context) {
				for _, w := range s.wires {
					w.Cut()
				}
				for _, d := range s.demos {
					begun := time.Now()
					g.must("a write without Redis", g.post(d, "/incr"), http.StatusServiceUnavailable, "")
					within(t, "the answer without Redis", begun, time.Second)
				}
				pause(ctx, length)
				for _, w := range s.wires {
					w.Join(t)
				}
			})
			s.backWithin(2 * lease)
		})
	}
}

// All packets are lost. Connections stay open, and new ones are accepted.
func TestWireBlackHole(t *testing.T) {
	s := stage(t, "the wire is a black hole for 3 s, for new connections, too", "P8: 503 in time, recovers by itself", setting{apart: true, wired: true, logins: true})
	g := s.guest(s.demos[0])
	s.run(func(ctx context.Context) {
		s.both(rig.Trouble{Lose: true})
		begun := time.Now()
		g.must("a write into the hole", g.post(s.demos[0], "/incr"), http.StatusServiceUnavailable, "")
		within(t, "a write into the hole", begun, timeout*5/4)
		pause(ctx, 3*time.Second-time.Since(begun))
		s.heal()
	})
	s.backWithin(timeout + 2*lease)
}

// One process is cut off from Redis, and another is not. The network keeps the bytes that were under way, and
// delivers them in the end. The process that is cut off must respond 503, and hold no session for longer than a
// lease. Its late commands must change nothing.
func TestWirePartition(t *testing.T) {
	s := stage(t, "one process cut off for longer than the lease", "P3, P7: others take over in time, no stale write", setting{
		apart: true, wired: true, logins: true, flags: []string{"-work", (lease * 7 / 10).String()}})
	alone, other := s.demos[0], s.demos[1]
	g := s.guest(alone)
	g.mustSet(alone, "before")
	var h *holding
	s.run(func(ctx context.Context) {
		h = s.holdAs(g, alone, "stale")
		for cutOff := false; !cutOff; {
			s.wires[0].Trouble(&rig.Trouble{Hold: true}, &rig.Trouble{Hold: true})
			cutOff = s.redis.Exists(t, h.lock)
			if !cutOff { // it has saved before: the machine is busy
				s.heal()
				h.awaitLock()
			}
		}
		begun := time.Now()
		eventually(t, lease+2*time.Second, "another process takes over", func() bool { // with a 503 it may try again
			return g.set(other, "rightful").status == http.StatusOK
		})
		s.seen = fmt.Sprintf("taken over in %v", time.Since(begun).Round(time.Millisecond))
		g.must("a write to the process that is cut off", g.post(alone, "/incr"), http.StatusServiceUnavailable, "")
		g.must("a read from the process that is cut off", g.get(alone, "/params"), http.StatusServiceUnavailable, "")
		g.must("the stale write", <-h.replies, http.StatusServiceUnavailable, "")
		pause(ctx, lease+time.Second-time.Since(begun))
		s.heal()
	})
	for _, d := range s.demos {
		h.mustHave(d, "before", "rightful")
	}
}

// proxied adds a demo that reaches Redis through a proxy.
func (s *scene) proxied() *redistest.Proxy {
	s.Helper()
	p := redistest.NewProxy(s.T, s.redis)
	s.add(p.URL)
	return p
}

// A connection dies silently, as when a firewall forgets it: commands on it get neither a reply nor an error. A
// reply on another connection reveals that, and the commands are repeated in time.
func TestWireConnectionDies(t *testing.T) {
	s := stage(t, "the connection dies silently, again and again", "P1, P8: not noticed", setting{demos: 1, logins: true, lease: patient})
	straight := s.demos[0]
	s.close(straight)
	p, died, next := s.proxied(), 0, time.Now()
	s.run(func(ctx context.Context) {
		p.Inject(func(redistest.Command) redistest.Fault {
			if time.Now().Before(next) {
				return redistest.Pass
			}
			died++
			next = time.Now().Add(timeout * 5 / 4) // the client does not repeat more often
			return redistest.Die
		})
		pause(ctx, unlessShort(5*timeout, 3*timeout))
		p.Inject(nil)
	})
	happened(t, "a connection died", died, 3)
	s.seen = fmt.Sprintf("%d connections died", died)
	s.allAnswered()
}

// Replies and commands are lost at random, and some replies never come.
func TestWireRandomLosses(t *testing.T) {
	s := stage(t, "one command in 20 lost, or its reply, or half of that", "P1: nothing lost", setting{apart: true, demos: 1, logins: true})
	p, random := s.proxied(), chance(77)
	var losses, endless atomic.Int64
	s.run(func(ctx context.Context) {
		p.Inject(func(redistest.Command) redistest.Fault {
			switch {
			case random.IntN(400) == 0: // costs a whole timeout
				endless.Add(1)
				return redistest.Hang
			case random.IntN(20) == 0:
				losses.Add(1)
				return []redistest.Fault{redistest.DropReply, redistest.DropCommand, redistest.CutReply}[random.IntN(3)]
			}
			return redistest.Pass
		})
		pause(ctx, unlessShort(4*time.Second, 2*time.Second))
		// A few commands without a reply may have taken all the time so far.
		eventually(t, 20*time.Second, "there are enough losses", func() bool { return losses.Load() >= 30 })
		p.Inject(nil)
	})
	s.seen = fmt.Sprintf("%d losses, %d incomplete commands", losses.Load(), endless.Load())
}

// Commands are held back until their sender has stopped waiting, and others have acquired the sessions and written.
// Then Redis executes the commands. They must change nothing, and a lock that they acquire must not last.
func TestWireCommandsExecutedLate(t *testing.T) {
	for _, late := range wireCommands {
		t.Run(late.what, func(t *testing.T) {
			s := stage(t, late.what+" reaches Redis after its sender has given up", "P3: no stale write, no lock beyond its lease", setting{apart: true, demos: 1})
			p := s.proxied()
			all := newUsers(t, 4, s.sites.Any) // users keep their sessions
			var held atomic.Int32
			s.run(func(ctx context.Context) {
				var working sync.WaitGroup
				busy, stop := context.WithCancel(ctx)
				working.Go(func() { workFor(busy, all, time.Minute) })
				p.Inject(func(c redistest.Command) redistest.Fault {
					if !late.is(c) {
						return redistest.Pass
					}
					held.Add(1)
					return redistest.HangCommand
				})
				pause(ctx, 200*time.Millisecond)
				eventually(t, lockWait, "a command is late", func() bool { return held.Load() > 0 })
				p.Inject(nil)
				since := time.Now()
				pause(ctx, timeout*5/4)
				for _, v := range s.visitors {
					eventually(t, s.longest, "another process has taken over", func() bool { return v.WroteSince(since) })
				}
				p.Release()
				stop()
				working.Wait()
			})
			s.seen = fmt.Sprintf("%d commands late; users: %v", held.Load(), lastLook(t, all))
		})
	}
}

const password = "correct-horse-battery-staple"

// The password of one process is changed, and its connections are killed. Then the password is changed
// back.
func TestWireWrongPassword(t *testing.T) {
	s := stage(t, "the password is changed for 2 s, connections killed", "P8, P11: 503 at once, recovers by itself, no secret shown", setting{apart: true, demos: 1, logins: true})
	s.redis.Do(t, "ACL", "SETUSER", "app", "on", ">"+password, "~*", "&*", "+@all")
	d := s.add("redis://app:" + password + "@" + s.redis.Addr)
	g := s.guest(d)
	s.run(func(ctx context.Context) {
		s.redis.Do(t, "ACL", "SETUSER", "app", "resetpass", ">another")
		killed := s.redis.Do(t, "CLIENT", "KILL", "USER", "app").(int64)
		begun := time.Now()
		got := g.post(d, "/incr")
		within(t, "the answer with a wrong password", begun, time.Second)
		if got.status != http.StatusServiceUnavailable || strings.Contains(got.text, password) {
			t.Errorf("with a wrong password, a write was answered with %d %q", got.status, got.text)
		}
		pause(ctx, 2*time.Second)
		s.redis.Do(t, "ACL", "SETUSER", "app", "resetpass", ">"+password)
		s.seen = fmt.Sprintf("%d connections killed", killed)
		happened(t, "a connection was killed", int(killed), 1)
		g.must("with the password again", g.post(d, "/incr"), http.StatusOK, "1")
	})
	if !strings.Contains(d.Log(), "WRONGPASS") {
		t.Error("the log does not say what is wrong")
	}
	if strings.Contains(d.Log(), password) {
		t.Error("the log contains the password")
	}
}
