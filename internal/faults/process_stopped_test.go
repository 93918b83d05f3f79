package faults

import (
	"context"
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/redistest"
)

const stoppedPromise = "P3: the process cannot write any more"

// stops is how often a process is stopped at a known point of a guest's request.
func stops() int { return unlessShort(3, 1) }

// A process is stopped in a handler, and continues after other requests have had its session.
func TestAppStoppedInHandler(t *testing.T) {
	s := stage(t, "process stopped past its lease, in the handler", stoppedPromise, setting{logins: true})
	s.run(func(context.Context) {
		frozen := s.add(s.redis.URL, "-work", "1h")
		for range stops() {
			h := s.hold(frozen, "stale")
			frozen.Signal(t, syscall.SIGSTOP)
			h.mustSet(s.demos[0], "rightful") // when the lease has expired
			frozen.Signal(t, syscall.SIGCONT)
			h.must("the stale write", <-h.replies, http.StatusServiceUnavailable, "")
			h.mustHave(s.demos[1], "rightful")
		}
	})
}

// A process is stopped, and its commit arrives in Redis after other requests have had the session. The commit
// either carries the record, or renames a staged one.
func TestAppStoppedWithLateCommit(t *testing.T) {
	for what, commit := range map[string]struct {
		is     func(redistest.Command) bool
		before []string // names in the session
	}{
		"its commit comes late":      {is: byGuest(isCommit)},
		"its large record is staged": {is: byGuest(isRenaming), before: []string{large}},
	} {
		t.Run(what, func(t *testing.T) {
			s := stage(t, "process stopped past its lease, "+what, stoppedPromise, setting{logins: true})
			s.run(func(context.Context) {
				for range stops() {
					proxy := redistest.NewProxy(t, s.redis)
					frozen := s.add(proxy.URL)
					g, answer := s.catchAt(frozen, proxy, commit.is, commit.before)
					frozen.Signal(t, syscall.SIGSTOP)
					g.mustSet(s.demos[0], "rightful") // when the lease has expired
					proxy.Release()
					frozen.Signal(t, syscall.SIGCONT)
					g.must("the stale write", <-answer, http.StatusServiceUnavailable, "")
					s.close(frozen) // at most one stopped process has visitors
					g.mustHave(s.demos[1], append(commit.before, "rightful")...)
				}
			})
		})
	}
}

// catchAt returns a guest whose command hangs, and the channel of its response. It may have to try several guests: if
// other requests wait there, the process does without that command.
func (s *scene) catchAt(frozen *demotest.Demo, proxy *redistest.Proxy, which func(redistest.Command) bool, before []string) (*guest, <-chan reply) {
	s.Helper()
	late := time.After(s.longest)
	for {
		g := s.guest(frozen)
		for _, name := range before {
			g.mustSet(frozen, name)
		}
		caught := catch(proxy, death{at: which, by: redistest.HangCommand})
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

// One process after another is stopped at random moments, also between a take and its commit. Some stops last
// longer than the lease.
func TestAppStoppedAgainAndAgain(t *testing.T) {
	const lease = 200 * time.Millisecond // short, so that there is time for many stops
	s := stage(t, "processes stopped at random moments, some past their lease", stoppedPromise,
		setting{logins: true, demos: 3, visitors: 8, lease: lease})
	random, rounds, past := chance(7), 0, 0
	s.run(func(ctx context.Context) {
		least, most := unlessShort(24, 12), 240
		for ; rounds < least || rounds < most && s.summary().Silent == 0; rounds++ {
			d := s.demos[random.IntN(len(s.demos))]
			length := time.Duration(random.Int64N(int64(lease / 3)))
			if rounds%3 > 0 {
				length += lease
				past++
			}
			d.Signal(t, syscall.SIGSTOP)
			pause(ctx, length)
			d.Signal(t, syscall.SIGCONT)
			pause(ctx, time.Duration(random.Int64N(int64(50*time.Millisecond))))
		}
	})
	happened(t, "a process was stopped in the middle of a request", s.summary().Silent, 1)
	s.seen = fmt.Sprintf("stopped %d times, %d of them past the lease", rounds, past)
}
