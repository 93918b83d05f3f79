package faults

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// proxied adds a demo that reaches Redis through a proxy.
func (s *scene) proxied() *redistest.Proxy {
	s.Helper()
	p := redistest.NewProxy(s.T, s.redis)
	s.add(p.URL)
	return p
}

// A connection dies without a word, as where a firewall forgets it: what is sent gets no reply, and
// no error. A reply on another connection shows it, and what was sent is repeated in time.
func TestWireConnectionDies(t *testing.T) {
	s := stage(t, "the connection dies without a word, time and again", "P1, P8: not noticed", setting{demos: 1, logins: true, flags: []string{"-lease", "10s"}})
	straight := s.demos[0]
	s.close(straight)
	p, died, next := s.proxied(), 0, time.Now()
	s.run(func(ctx context.Context) {
		p.Inject(func(redistest.Command) redistest.Fault {
			if time.Now().Before(next) {
				return redistest.Pass
			}
			died++
			next = time.Now().Add(timeout * 5 / 4) // it is not believed more often
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
			case random.IntN(400) == 0: // it takes a whole time-out
				endless.Add(1)
				return redistest.Hang
			case random.IntN(20) == 0:
				losses.Add(1)
				return []redistest.Fault{redistest.DropReply, redistest.DropCommand, redistest.CutReply}[random.IntN(3)]
			}
			return redistest.Pass
		})
		pause(ctx, unlessShort(4*time.Second, 2*time.Second))
		// A few commands without an end may have filled the time.
		eventually(t, 20*time.Second, "there are enough losses", func() bool { return losses.Load() >= 30 })
		p.Inject(nil)
	})
	s.seen = fmt.Sprintf("%d losses, %d commands without an end", losses.Load(), endless.Load())
}

// Commands are held back until their sender has given up, and others have taken over and
// written. Then Redis executes them. They must change nothing, and a lock that they take
// must not last.
func TestWireCommandsExecutedLate(t *testing.T) {
	for _, late := range wireCommands {
		t.Run(late.what, func(t *testing.T) {
			s := stage(t, late.what+" reaches Redis after its sender gave up", "P3: no stale write, no lock beyond its lease", setting{apart: true, demos: 1})
			p := s.proxied()
			all := newUsers(t, 4, s.sites.Any) // whose sessions stay the same
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
					if !v.WroteSince(since) {
						t.Error("no other process has taken over meanwhile")
					}
				}
				p.Release()
				stop()
				working.Wait()
			})
			s.seen = fmt.Sprintf("%d commands late; users: %v", held.Load(), lastLook(t, all))
		})
	}
}
