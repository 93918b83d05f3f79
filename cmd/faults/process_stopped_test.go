package faults

import (
	"context"
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/testdata/redistest"
)

const stoppedPromise = "P3: it cannot write any more"

// stops is how often a process is stopped while a victim's request is at a known point.
func stops() int {
	if testing.Short() {
		return 1
	}
	return 3
}

// A process that is frozen in a handler wakes up when others have had its session.
func TestAppStoppedInHandler(t *testing.T) {
	t.Parallel()
	s := stage(t, "app stopped past its lease, in the handler", stoppedPromise, setting{logins: true})
	s.suffer(func(context.Context) {
		frozen := s.add(s.redis.URL, "-work", "1h")
		for range stops() {
			v := newVictim(t, frozen)
			answer := v.setting(frozen, "stale")
			eventually(t, s.longest, "it has the lock", func() bool { return len(s.locks(frozen, "POST /set")) > 0 })
			frozen.Signal(t, syscall.SIGSTOP)
			v.wantSet(s.demos[0], "rightful") // once the lease is over
			frozen.Signal(t, syscall.SIGCONT)
			if got := <-answer; got != http.StatusServiceUnavailable {
				t.Errorf("the stale write was answered with %d", got)
			}
			v.wantNames(s.demos[1], "rightful")
		}
	})
	s.seen = fmt.Sprintf("%d writes refused", stops())
}

// Its commit is on the way to Redis, and arrives when others have had the session.
func TestAppStoppedWithLateCommit(t *testing.T) {
	t.Parallel()
	s := stage(t, "app stopped past its lease, its commit comes late", stoppedPromise, setting{logins: true})
	s.suffer(func(context.Context) {
		for range stops() {
			r := s.stopAtCommit()
			r.victim.wantSet(s.demos[0], "rightful")
			r.proxy.Release()
			if got := r.goOn(); got != http.StatusServiceUnavailable {
				t.Errorf("the stale write was answered with %d", got)
			}
			r.victim.wantNames(s.demos[1], "rightful")
		}
	})
	s.seen = fmt.Sprintf("%d commits refused", stops())
}

// Its commit is in Redis while it is stopped, and the reply is there when it wakes up.
// The write came before those of the others, so they have built on it.
func TestAppStoppedWithReplyOnTheWire(t *testing.T) {
	t.Parallel()
	s := stage(t, "app stopped past its lease, the reply to its commit waits", "P1, P3: the write is there, and all that came after it",
		setting{logins: true})
	answered := 0
	s.suffer(func(ctx context.Context) {
		for range stops() {
			r := s.stopAtCommit()
			r.proxy.Release()
			r.victim.wantNames(s.demos[0], "stale")
			r.victim.wantSet(s.demos[0], "rightful")
			pause(ctx, lease) // it is stopped for longer than that, whatever the others do
			switch got := r.goOn(); got {
			case http.StatusOK:
				answered++
			case http.StatusServiceUnavailable: // it has waited for too long to know
			default:
				t.Errorf("the write was answered with %d", got)
			}
			r.victim.wantNames(s.demos[1], "rightful", "stale")
		}
	})
	s.seen = fmt.Sprintf("%d of %d writes answered", answered, stops())
}

// A rest is a process that was stopped while its commit was on the way to Redis.
type rest struct {
	proxy  *redistest.Proxy
	victim *victim
	answer <-chan int
	goOn   func() int // lets it go on, and returns the answer's status
}

func (s *scene) stopAtCommit() rest {
	s.Helper()
	proxy := redistest.NewProxy(s.T, s.redis)
	frozen := s.add(proxy.URL)
	v := newVictim(s.T, frozen)
	caught := catch(proxy, doom{at: atCommit, by: redistest.HangCommand})
	answer := v.setting(frozen, "stale")
	select {
	case <-caught:
	case <-time.After(s.longest):
		s.Fatal("the victim's commit did not come")
	}
	frozen.Signal(s.T, syscall.SIGSTOP)
	return rest{proxy, v, answer, func() int {
		frozen.Signal(s.T, syscall.SIGCONT)
		got := <-answer
		s.close(frozen) // one that is stopped at a time
		return got
	}}
}

// One process after another is stopped, for longer and for shorter than its lease, at
// any moment: between a take and its commit, too.
func TestAppStoppedAgainAndAgain(t *testing.T) {
	t.Parallel()
	const lease = 200 * time.Millisecond // short, so that there is time for many
	s := stage(t, "apps stopped at random moments, some past their lease", stoppedPromise,
		setting{logins: true, demos: 3, visitors: 8, flags: []string{"-lease", lease.String()}})
	random, rounds, past := chance(7), 24, 0
	if testing.Short() {
		rounds = 12
	}
	s.suffer(func(ctx context.Context) {
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
	s.seen = fmt.Sprintf("stopped %d times, %d of them past the lease", rounds, past)
}
