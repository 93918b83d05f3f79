package faults

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/a2139e8d/latchkey/cmd/faults/rig"
)

// Both processes are told to end, one after the other, each while it holds sessions
// and waits for one. They answer what they have begun, and leave nothing behind.
func TestAppsTerminatedInTurn(t *testing.T) {
	t.Parallel()
	s := stage(t, "apps terminated in turn", "what was begun is answered; no lock is left", setting{logins: true, flags: []string{"-work", "1s"}})
	var answered int
	s.suffer(func(context.Context) {
		first, second := s.demos[0], s.demos[1]
		answered += s.terminate(first, second)
		third := s.add(s.redis.URL)
		answered += s.terminate(second, third)
	})
	s.seen = fmt.Sprintf("all %d requests that had begun were answered", answered)
}

// terminate ends a process and returns how many requests it was in the middle of.
func (s *scene) terminate(d, other *rig.Demo) (answered int) {
	s.Helper()
	// One waits for a session that the other process holds. That is known, since it
	// is in the queue for it. The others hold theirs, since they have the locks.
	const holders = 8
	waiting := newVictim(s.T, d)
	held := waiting.setting(other, "held")
	eventually(s.T, s.longest, "the other process holds the session", func() bool { return len(s.locks(other, "POST /set")) == 1 })
	queue := s.locks(other, "POST /set")[0] + ".queue"
	waits := waiting.setting(d, "waited")

	victims, answers := make([]*victim, holders), make([]<-chan int, holders)
	for i := range holders {
		victims[i] = newVictim(s.T, d)
	}
	for i, v := range victims {
		answers[i] = v.setting(d, "held")
	}
	eventually(s.T, s.longest, "all requests have begun", func() bool {
		return len(s.locks(d, "POST /set")) >= holders && (s.redis.Exists(s.T, queue) || len(s.locks(d, "POST /set")) > holders)
	})
	d.Signal(s.T, syscall.SIGTERM)
	s.close(d)
	for i, v := range victims {
		if got := <-answers[i]; got != http.StatusOK {
			s.Errorf("a request that had begun was answered with %d", got)
		} else {
			answered++
		}
		v.wantNames(other, "held")
	}
	if one, two := <-held, <-waits; one != http.StatusOK || two != http.StatusOK {
		s.Errorf("who held the session was answered with %d, who waited with %d", one, two)
	} else {
		answered++
	}
	waiting.wantNames(other, "held", "waited")
	s.wantEnded(d)
	return answered
}

// wantEnded checks that a process that was told to end does so, and leaves no lock.
func (s *scene) wantEnded(d *rig.Demo) {
	s.Helper()
	if err := d.Wait(s.T, s.longest); err != nil {
		s.Errorf("it ended with %v", err)
	}
	if left := s.locks(d, ""); len(left) > 0 {
		s.Errorf("it has left %s", strings.Join(left, ", "))
	}
}

// replace ends a process whose place another has taken, as a rolling restart does.
func (s *scene) replace(old *rig.Demo) {
	s.Helper()
	s.close(old)
	old.Signal(s.T, syscall.SIGTERM)
	s.wantEnded(old)
}
