package main

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/history"
	"github.com/a2139e8d/latchkey/internal/redistest"
)

// Many clients of two processes want one session at once, so that it is handed over and
// one commit serves several requests, while all kinds of things happen. Every answer is
// right at all times, and every answered write is kept.
func TestHandOverHistories(t *testing.T) {
	t.Parallel()
	for name, happens := range map[string]func(t *testing.T, s *scene){
		"nothing": func(*testing.T, *scene) {},
		"connections break": func(t *testing.T, s *scene) {
			s.r.Do(t, "CLIENT", "KILL", "TYPE", "normal") // some of them in the middle of commits
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
				one.Signal(t, syscall.SIGSTOP)
				time.Sleep(sceneLease + 100*time.Millisecond) // the other process goes on
				one.Signal(t, syscall.SIGCONT)
			}
		},
		"a process is killed": func(t *testing.T, s *scene) {
			if s.round == 10 {
				s.sites.Remove(s.processes[0].URL)
				s.processes[0].Kill()
			}
		},
	} {
		for wakeups, user := range map[string]string{"notified": "", "not notified": "deaf:pw@"} {
			t.Run(name+", waiters are "+wakeups, func(t *testing.T) {
				t.Parallel()
				s := newScene(t)
				for range 2 {
					s.start(t, strings.Replace(s.r.URL, "//", "//"+user, 1))
				}
				s.play(t, newVisitor(t, &s.sites), func() { happens(t, s) })
			})
		}
	}
}

// No notification reaches the two processes: all are lost on their way. Now and then a
// command or its reply is lost, too.
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
			s := newScene(t)
			var commits atomic.Int64
			for range 2 {
				p := redistest.NewProxy(t, s.r) // which drops notifications
				s.start(t, p.URL)
				p.Inject(func(cmd redistest.Command) redistest.Fault {
					if isCommit(cmd) {
						commits.Add(1)
					}
					return oneIn(400, fault)
				})
			}
			v := newVisitor(t, &s.sites)
			s.play(t, v, func() {})
			if n := commits.Load(); n == 0 || fault == redistest.Pass && int(n) >= v.Summary().Writes {
				t.Errorf("%d writes were %d commits: they do not share them", v.Summary().Writes, n)
			}
			t.Logf("%d commits", commits.Load())
		})
	}
}

// oneIn returns a fault once in n times, at random.
func oneIn(n int, fault redistest.Fault) redistest.Fault {
	if rand.IntN(n) == 0 {
		return fault
	}
	return redistest.Pass
}

// sceneLease is short, so that a scene goes on after a process has stopped or died.
const sceneLease = 300 * time.Millisecond

// A scene is processes that share a Redis, and what happens there.
type scene struct {
	r         *redistest.Server
	processes []*demotest.Demo
	sites     history.Sites
	round     int // how often something has happened
}

func newScene(t *testing.T) *scene {
	s := &scene{r: redistest.Real(t)}
	s.r.Do(t, "ACL", "SETUSER", "deaf", "on", ">pw", "allkeys", "allcommands", "resetchannels")
	return s
}

// start adds a process.
func (s *scene) start(t *testing.T, redisURL string) {
	p := demotest.Start(t, "-redis", redisURL, "-lease", sceneLease.String())
	s.processes = append(s.processes, p)
	s.sites.Add(p.URL)
}

// play lets things happen now and then while the clients of a visitor make requests.
func (s *scene) play(t *testing.T, v *history.Visitor, happens func()) {
	s.playWith(t, v, 20, happens)
}

func (s *scene) playWith(t *testing.T, v *history.Visitor, clients int, happens func()) {
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
	visit(ctx, t, v, clients)
	<-done
}

// delete deletes all keys of a kind, as evictions may.
func (s *scene) delete(t *testing.T, kind string) {
	for _, key := range s.r.Keys(t) {
		if strings.HasSuffix(key, kind) {
			s.r.Do(t, "DEL", key)
		}
	}
}

// isCommit distinguishes the script that commits from the one that takes the lock: both have the
// keys of a session, and a token as their first argument. The second argument of the former is the
// name of a record, that of the latter a number of milliseconds.
func isCommit(cmd redistest.Command) bool {
	a := cmd.Args
	if cmd.Name != "EVALSHA" || a[1] != "3" && a[1] != "4" {
		return false
	}
	a = a[2+int(a[1][0]-'0'):]
	return strings.Contains(a[0], " ") && len(a[1]) >= 16
}
