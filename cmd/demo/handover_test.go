package main

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/testdata/redistest"
)

// Many clients of two processes want one session at once, so that it goes from hand
// to hand and one commit serves several requests, while all kinds of things happen.
// Every answer is right at all times, and every answered write is kept.
func TestHandOverHistories(t *testing.T) {
	t.Parallel()
	for name, happens := range map[string]func(t *testing.T, s *scene){
		"nothing": func(*testing.T, *scene) {},
		"connections break": func(t *testing.T, s *scene) {
			s.r.Do(t, "CLIENT", "KILL", "TYPE", "normal") // in the middle of commits, some of them
		},
		"the lock is deleted":  func(t *testing.T, s *scene) { s.delete(t, ".lock") },
		"the queue is deleted": func(t *testing.T, s *scene) { s.delete(t, ".queue") },
		"Redis hangs": func(t *testing.T, s *scene) {
			s.r.Pause(t)
			time.Sleep(10 * time.Millisecond) // for as long as it hangs
			s.r.Resume(t)
		},
		"a process is stopped past its lease": func(t *testing.T, s *scene) {
			if s.round%2 == 1 {
				one := s.processes[rand.IntN(2)]
				stop(t, one)
				time.Sleep(sceneLease + 100*time.Millisecond) // the other process goes on
				resume(t, one)
			}
		},
		"a process is killed": func(t *testing.T, s *scene) {
			if s.round == 10 {
				s.h.without(s.processes[0].url)
				if err := s.processes[0].cmd.Process.Kill(); err != nil {
					t.Error(err)
				}
			}
		},
	} {
		for wakeups, user := range map[string]string{"told": "", "not told": "deaf:pw@"} {
			t.Run(name+", waiters are "+wakeups, func(t *testing.T) {
				t.Parallel()
				s := newScene(t, user)
				s.play(t, func() { happens(t, s) })
				s.h.check()
			})
		}
	}
}

// The two processes hear nothing of what they subscribed to: each wake-up is lost on
// its way. And what they send, or what comes back, is lost now and then.
func TestHandOverHistoriesThroughBadNetworks(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]redistest.Fault{
		"nothing else":        redistest.Pass,
		"replies are lost":    redistest.DropReply,
		"replies are cut":     redistest.CutReply,
		"commands are lost":   redistest.DropCommand,
		"replies never come":  redistest.Hang,
		"commands never come": redistest.HangCommand,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &scene{r: redistest.Real(t)}
			var urls []string
			var commits atomic.Int64
			var bad atomic.Bool // once there is a session
			for range 2 {
				p := redistest.NewProxy(t, s.r) // which swallows messages
				p.Inject(func(cmd redistest.Command) redistest.Fault {
					if isCommit(cmd) {
						commits.Add(1)
					}
					if bad.Load() && rand.IntN(400) == 0 {
						return fault
					}
					return redistest.Pass
				})
				s.processes = append(s.processes, s.start(t, p.URL))
				urls = append(urls, s.processes[len(s.processes)-1].url)
			}
			s.h = newCounterHistory(t, urls...)
			bad.Store(true)
			s.play(t, func() {})
			s.h.check()
			if writes := s.h.writes.Load(); commits.Load() == 0 || fault == redistest.Pass && commits.Load() >= writes {
				t.Errorf("%d writes were %d commits: they do not share them", writes, commits.Load())
			}
			t.Logf("%d commits", commits.Load())
		})
	}
}

// sceneLease is short, so that a scene goes on after a process has stopped or died.
const sceneLease = 300 * time.Millisecond

// A scene is two processes that share a Redis, and what clients do there.
type scene struct {
	r         *redistest.Server
	processes []*process
	h         *counterHistory
	round     int
}

// newScene lets both processes log in as that user.
func newScene(t *testing.T, user string) *scene {
	s := &scene{r: redistest.Real(t)}
	s.r.Do(t, "ACL", "SETUSER", "deaf", "on", ">pw", "allkeys", "allcommands", "resetchannels")
	for range 2 {
		s.processes = append(s.processes, s.start(t, strings.Replace(s.r.URL, "//", "//"+user, 1)))
	}
	s.h = newCounterHistory(t, s.processes[0].url, s.processes[1].url)
	return s
}

func (s *scene) start(t *testing.T, url string) *process {
	return start(t, "-redis", url, "-key", key, "-lease", sceneLease.String())
}

// play lets things happen now and then while the clients are at it.
func (s *scene) play(t *testing.T, happens func()) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ; ctx.Err() == nil; s.round++ {
			time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond) // at any moment
			happens()
		}
	}()
	s.h.run(ctx, 20, 5)
	<-done
}

// delete deletes the session's key of that kind, as an eviction does.
func (s *scene) delete(t *testing.T, kind string) {
	for _, key := range s.r.Keys(t) {
		if strings.HasSuffix(key, kind) {
			s.r.Do(t, "DEL", key)
		}
	}
}

// isCommit tells the script that commits from the one that takes the lock: both have
// three keys, and the first argument of both is a token. The second is another or
// none, or a number.
func isCommit(cmd redistest.Command) bool {
	a := cmd.Args
	return cmd.Name == "EVALSHA" && len(a) > 6 && a[1] == "3" && strings.Contains(a[5], " ") &&
		(a[6] == "" || strings.Contains(a[6], " "))
}
