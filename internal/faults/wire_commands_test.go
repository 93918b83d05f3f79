package faults

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// A wireCommand is a kind of commands that may go wrong by itself: Redis executes others before and
// behind it.
type wireCommand struct {
	what string
	is   func(redistest.Command) bool
}

// wireCommands are those of a take and of a read without a script, and of the commit of a large
// record.
var wireCommands = []wireCommand{
	{"the SET of a lock", isLocking},
	{"the MGET of a take", isLooking},
	{"the SET of a large record", isStaging},
	{"the RENAME of a large record", isRenaming},
	{"the PEXPIRE or GET of a read", isReading},
}

// One command in ten is lost, or its reply, or half of that. What was sent with it is lost, too, or
// was done before. Where that is more than one in 10 ms, fewer are: an exchange that shares its
// connection with them is repeated twice, and given up when the third one breaks as well.
func TestWireCommandLost(t *testing.T) {
	for _, kind := range wireCommands {
		t.Run(kind.what, func(t *testing.T) {
			t.Parallel()
			s := stage(t, "one in ten is lost: "+kind.what+", or its reply, or half of that", "P1: nothing lost; not noticed", setting{demos: 1, flags: []string{"-lease", "10s"}})
			s.close(s.demos[0]) // no other process writes, so that all can be told from what is stored
			p := s.proxied()
			all := newUsers(t, 4, s.sites.Any)
			n, lost := 0, 0
			var last time.Time
			s.run(func(ctx context.Context) {
				p.Inject(func(c redistest.Command) redistest.Fault {
					if !kind.is(c) {
						return redistest.Pass
					}
					if n++; n%10 != 0 || time.Since(last) < 10*time.Millisecond {
						return redistest.Pass
					}
					last = time.Now()
					lost++
					return []redistest.Fault{redistest.DropCommand, redistest.DropReply, redistest.CutReply}[lost%3]
				})
				workFor(ctx, all, unlessShort(2*time.Second, time.Second))
				p.Inject(nil)
			})
			if lost < 6 {
				t.Errorf("only %d were lost", lost)
			}
			sum := lastLook(t, all)
			if s.seen = fmt.Sprintf("%d lost; users: %v", lost, sum); sum.silent > 0 {
				t.Errorf("%d requests of users were not answered", sum.silent)
			}
			s.allAnswered()
		})
	}
}

// One command in three is done a second time, after a while, as by a proxy that repeats what it
// has heard no reply to. By then others may have the session.
func TestWireCommandTwice(t *testing.T) {
	for _, kind := range wireCommands {
		t.Run(kind.what, func(t *testing.T) {
			t.Parallel()
			s := stage(t, "one in three is done again, up to two leases later: "+kind.what, "P3: it changes nothing; no lock beyond its lease", setting{demos: 1, logins: true})
			p := s.proxied()
			all := newUsers(t, 4, s.sites.Any)
			random, n, again := chance(78), 0, 0
			var copies sync.WaitGroup
			s.run(func(ctx context.Context) {
				p.Inject(func(c redistest.Command) redistest.Fault {
					if !kind.is(c) {
						return redistest.Pass
					}
					if n++; n%3 == 0 {
						again++
						after := time.Duration(random.Int64N(int64(2 * lease)))
						copies.Go(func() { pause(ctx, after); s.repeat(c) })
					}
					return redistest.Pass
				})
				workFor(ctx, all, unlessShort(3*time.Second, 1500*time.Millisecond))
				p.Inject(nil)
				copies.Wait()
			})
			if again < 10 {
				t.Errorf("only %d were done again", again)
			}
			s.seen = fmt.Sprintf("%d done again; users: %v", again, lastLook(t, all))
		})
	}
}

// repeat has Redis do a command once more. Nobody reads the reply, and Redis may refuse.
func (s *scene) repeat(c redistest.Command) {
	conn, err := redis.DialURL(s.redis.URL)
	if err != nil {
		s.Error(err)
		return
	}
	defer conn.Close()
	args := make([]any, len(c.Args))
	for i, arg := range c.Args {
		args[i] = arg
	}
	_, _ = conn.Do(c.Name, args...)
}

// The lock is gone, or another's, when the record is read: between the SET and the MGET of a take.
func TestWireLockGoneInATake(t *testing.T) {
	for what, steal := range map[string][]any{
		"deleted":    {"DEL"},
		"of another": {"SET", "somebody else", "XX", "PX", (lease / 20).Milliseconds()},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := stage(t, "the lock is "+what+" between the SET and the MGET of a take", "P1: not noticed, but for the wait", setting{demos: 1, logins: true})
			s.close(s.demos[0])
			p := s.proxied()
			var token string
			var gone atomic.Int64
			s.run(func(ctx context.Context) {
				p.Inject(func(c redistest.Command) redistest.Fault { // calls do not overlap
					switch {
					case isLocking(c):
						token = c.Args[1]
					case isLooking(c):
						if holder, _ := s.redis.Get(t, c.Args[0]); holder == token { // SET has taken it
							gone.Add(1)
							args := append([]any{c.Args[0]}, steal[1:]...)
							s.redis.Do(t, steal[0].(string), args...)
						}
					}
					return redistest.Pass
				})
				pause(ctx, unlessShort(2*time.Second, time.Second))
				eventually(t, 40*time.Second, "that was so", func() bool { return gone.Load() >= 2 }) // where the lock is handed on, it is rarely taken
				p.Inject(nil)
			})
			s.seen = fmt.Sprintf("%d times", gone.Load())
			s.allAnswered()
		})
	}
}

// What was staged is gone when it is to be renamed: Redis has evicted it, or lost it in a failover.
func TestWireStagedRecordGone(t *testing.T) {
	t.Parallel()
	s := stage(t, "a staged record is deleted before its RENAME", "P2: 503, and nothing else happens", setting{demos: 1, logins: true})
	p := s.proxied()
	all := newUsers(t, 4, s.sites.Any)
	n, gone := 0, 0
	s.run(func(ctx context.Context) {
		p.Inject(func(c redistest.Command) redistest.Fault {
			if isRenaming(c) {
				if n++; n%5 == 0 {
					gone++
					s.redis.Do(t, "DEL", c.Args[5])
				}
			}
			return redistest.Pass
		})
		workFor(ctx, all, unlessShort(2*time.Second, time.Second))
		p.Inject(nil)
	})
	sum := lastLook(t, all)
	if s.seen = fmt.Sprintf("%d deleted; users: %v", gone, sum); gone < 5 || sum.silent < gone/2 {
		t.Errorf("%d were deleted, and %d requests not answered", gone, sum.silent)
	}
	s.mustHaveLogged("no such key")
}

// A process dies after the SET of a large record. When its lease is over others go on, and the
// commit that comes late changes nothing.
func TestAppKilledWithALargeRecordStaged(t *testing.T) {
	t.Parallel()
	s := stage(t, "process killed, its large record staged, its commit not yet in Redis", killedPromise, setting{})
	s.run(func(context.Context) {
		proxy := redistest.NewProxy(t, s.redis)
		doomed := s.add(proxy.URL)
		g := s.guest(doomed)
		g.mustSet(doomed, large)
		caught := catch(proxy, death{at: byGuest(isRenaming), by: redistest.HangCommand})
		answer := g.setting(doomed, "lost")
		select {
		case <-caught:
		case <-time.After(s.longest):
			t.Fatal("the guest's commit did not come")
		}
		s.stagedForAMinute()
		doomed.Kill()
		s.close(doomed)
		g.must("a write to a process that dies", <-answer, 0, "")
		g.mustSet(s.demos[0], "next")
		proxy.Release()
		g.mustHave(s.demos[1], large, "next")
		g.mustSet(s.demos[1], "last")
		g.mustHave(s.demos[0], large, "last", "next")
	})
}
