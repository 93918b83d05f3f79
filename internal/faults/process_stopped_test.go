package faults

import (
	"context"
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/faults/rig"
	"github.com/a2139e8d/latchkey/internal/redistest"
)

const stoppedPromise = "P3: it cannot write any more"

// stops is how often a process is stopped at a known point of a guest's request.
func stops() int { return unlessShort(3, 1) }

// A process is stopped in a handler, and continues when others have had its session.
func TestAppStoppedInHandler(t *testing.T) {
	t.Parallel()
	s := stage(t, "process stopped past its lease, in the handler", stoppedPromise, setting{logins: true})
	s.run(func(context.Context) {
		frozen := s.add(s.redis.URL, "-work", "1h")
		for range stops() {
			h := s.hold(frozen, "stale")
			frozen.Signal(t, syscall.SIGSTOP)
			h.mustSet(s.demos[0], "rightful") // once the lease is over
			frozen.Signal(t, syscall.SIGCONT)
			h.must("the stale write", <-h.replies, http.StatusServiceUnavailable, "")
			h.mustHave(s.demos[1], "rightful")
		}
	})
	s.seen = fmt.Sprintf("%d writes refused", stops())
}

// The commit of a stopped process arrives in Redis when others have had the session.
func TestAppStoppedWithLateCommit(t *testing.T) {
	t.Parallel()
	s := stage(t, "process stopped past its lease, its commit comes late", stoppedPromise, setting{logins: true})
	s.run(func(context.Context) {
		for range stops() {
			r := s.stopAtCommit()
			r.guest.mustSet(s.demos[0], "rightful")
			r.proxy.Release()
			r.guest.must("the stale write", r.goOn(), http.StatusServiceUnavailable, "")
			r.guest.mustHave(s.demos[1], "rightful")
		}
	})
	s.seen = fmt.Sprintf("%d commits refused", stops())
}

// The commit of a process is executed while the process is stopped, and the reply is there
// when it continues. The write came before those of the others, so they include it.
func TestAppStoppedWithReplyOnTheWire(t *testing.T) {
	t.Parallel()
	s := stage(t, "process stopped past its lease, the reply to its commit waits", "P1, P3: the write is there, and all that came after it",
		setting{logins: true})
	answered := 0
	s.run(func(ctx context.Context) {
		for range stops() {
			r := s.stopAtCommit()
			r.proxy.Release()
			r.guest.mustHave(s.demos[0], "stale")
			r.guest.mustSet(s.demos[0], "rightful")
			pause(ctx, lease) // so that it is stopped for longer than that
			switch got := r.goOn(); got.status {
			case http.StatusOK:
				answered++
			case http.StatusServiceUnavailable: // its exchange has timed out
			default:
				t.Errorf("the write was answered with %+v", got)
			}
			r.guest.mustHave(s.demos[1], "rightful", "stale")
		}
	})
	s.seen = fmt.Sprintf("%d of %d writes answered", answered, stops())
}

// A stopped is a process that was stopped while its commit was on its way to Redis.
type stopped struct {
	proxy *redistest.Proxy
	guest *guest
	goOn  func() reply // continues it, and returns the answer
}

func (s *scene) stopAtCommit() stopped {
	s.Helper()
	return s.stopAt(func(*guest) func(redistest.Command) bool { return byGuest(isCommit) })
}

// stopAt stops a process while a command of a guest's write is on its way.
func (s *scene) stopAt(which func(*guest) func(redistest.Command) bool, before ...string) stopped {
	s.Helper()
	proxy := redistest.NewProxy(s.T, s.redis)
	frozen := s.add(proxy.URL)
	g, answer := s.catchAt(frozen, proxy, which, before)
	frozen.Signal(s.T, syscall.SIGSTOP)
	return stopped{proxy, g, func() reply {
		frozen.Signal(s.T, syscall.SIGCONT)
		got := <-answer
		s.close(frozen) // visitors go to one such process at a time
		return got
	}}
}

// catchAt returns a guest whose command hangs, and where its answer will come. Several may have to be
// tried: the command does not come where the process goes another way, since others wait there.
func (s *scene) catchAt(frozen *demotest.Demo, proxy *redistest.Proxy, which func(*guest) func(redistest.Command) bool, before []string) (*guest, <-chan reply) {
	s.Helper()
	late := time.After(s.longest)
	for {
		g := s.guest(frozen)
		for _, name := range before {
			g.mustSet(frozen, name)
		}
		caught := catch(proxy, death{at: which(g), by: redistest.HangCommand})
		answer := g.setting(frozen, "stale")
		select {
		case <-caught:
			return g, answer
		case got := <-answer:
			g.must("a write without the command", got, http.StatusOK, "ok")
		case <-late:
			s.Fatal("the guest's command did not come")
		}
	}
}

// A process is stopped when SET has taken the lock for it: before MGET reads the record under it, or
// before it hears of that. By then others have had the session.
func TestAppStoppedInATake(t *testing.T) {
	looking := func(g *guest) func(redistest.Command) bool {
		lock := rig.RecordKey(t, g.cookie) + ".lock"
		return func(c redistest.Command) bool { return isLooking(c) && c.Args[0] == lock }
	}
	for when, done := range map[string]bool{"before its MGET": false, "before the reply to its MGET": true} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			s := stage(t, "process stopped past its lease, in a take, "+when, stoppedPromise, setting{logins: true})
			answered := 0
			s.run(func(ctx context.Context) {
				for range stops() {
					r := s.stopAt(looking)
					if done {
						r.proxy.Release()
					}
					r.guest.mustSet(s.demos[0], "rightful") // once the lease is over
					r.proxy.Release()
					want := []string{"rightful"}
					switch got := r.goOn(); got.status {
					case http.StatusOK: // it has taken the session anew, and read it
						answered++
						want = append(want, "stale")
					case http.StatusServiceUnavailable:
					default:
						t.Errorf("the write was answered with %+v", got)
					}
					r.guest.mustHave(s.demos[1], want...)
				}
			})
			s.seen = fmt.Sprintf("%d of %d writes answered, on what the others had written", answered, stops())
		})
	}
}

// A process is stopped when its large record is staged, and the commit that renames it comes late.
func TestAppStoppedWithALargeRecordStaged(t *testing.T) {
	t.Parallel()
	s := stage(t, "process stopped past its lease, its large record staged", stoppedPromise, setting{logins: true})
	s.run(func(context.Context) {
		for range stops() {
			r := s.stopAt(func(*guest) func(redistest.Command) bool { return byGuest(isRenaming) }, large)
			r.guest.mustSet(s.demos[0], "rightful")
			r.proxy.Release()
			r.guest.must("the stale write", r.goOn(), http.StatusServiceUnavailable, "")
			r.guest.mustHave(s.demos[1], large, "rightful")
		}
	})
	s.seen = fmt.Sprintf("%d commits refused", stops())
}

// One process after another is stopped, for longer and for shorter than its lease, at
// random moments: between a take and its commit, too.
func TestAppStoppedAgainAndAgain(t *testing.T) {
	t.Parallel()
	const lease = 200 * time.Millisecond // short, so that there is time for many stops
	s := stage(t, "processes stopped at random moments, some past their lease", stoppedPromise,
		setting{logins: true, demos: 3, visitors: 8, flags: []string{"-lease", lease.String()}})
	random, rounds, past := chance(7), unlessShort(24, 12), 0
	s.run(func(ctx context.Context) {
		for round := range rounds {
			d := s.demos[random.IntN(len(s.demos))]
			length := time.Duration(random.Int64N(int64(lease / 3)))
			if round%3 > 0 {
				length += lease
				past++
			}
			d.Signal(t, syscall.SIGSTOP)
			pause(ctx, length)
			d.Signal(t, syscall.SIGCONT)
			pause(ctx, time.Duration(random.Int64N(int64(50*time.Millisecond))))
		}
	})
	if s.summary().Silent == 0 {
		t.Error("no process was stopped in the middle of a request")
	}
	s.seen = fmt.Sprintf("stopped %d times, %d of them past the lease", rounds, past)
}
