package main

import (
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/redistest"
)

// shared starts the servers that several processes need to share sessions under a
// lock, and returns the flags for the processes.
func shared(t *testing.T, lock string) []string {
	t.Helper()
	urls := redistest.Real(t).URL
	if lock == lockRedlock {
		urls += "," + redistest.Real(t).URL + "," + redistest.Real(t).URL
	}
	return []string{"-lock", lock, "-redis", urls}
}

// SIGTERM lets a running request finish and leaves no lock behind.
func TestSIGTERMDrains(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	p := demotest.Start(t, "-redis", r.URL, "-work", "300ms")
	c := newClient(t)
	post(t, c, p.URL+"/reset")
	answered := make(chan string, 1)
	go func() { answered <- post(t, c, p.URL+"/set", "name", "a") }()
	redistest.Eventually(t, "the request holds its session", func() bool { return hasLock(t, r) })
	p.Signal(t, syscall.SIGTERM)
	if got := <-answered; got != "ok" {
		t.Errorf("the running request was answered with %q", got)
	}
	if err := p.Wait(t, time.Minute); err != nil {
		t.Errorf("the demo ended with %v; log:\n%s", err, p.Log())
	}
	if hasLock(t, r) {
		t.Errorf("a lock is left behind: %v", r.Keys(t))
	}
}

func hasLock(t *testing.T, r *redistest.Server) bool {
	return slices.ContainsFunc(r.Keys(t), func(key string) bool { return strings.HasSuffix(key, ".lock") })
}

// P7 and P3, with real processes and signals. A process that is killed in the middle of a request
// keeps its session locked for the lease, and no longer. One that is stopped for longer than that
// cannot write when it goes on.
func TestAProcessEndsInTheMiddle(t *testing.T) {
	t.Parallel()
	for name, stopped := range map[string]bool{"killed": false, "stopped": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := redistest.Real(t)
			args := []string{"-redis", r.URL, "-lease", "3s", "-lock-wait", "1m"}
			// The work ends when the lock is lost, and then the handler tries to write.
			doomed, other := demotest.Start(t, append(args, "-work", "1h")...), demotest.Start(t, args...)
			c := newClient(t)
			post(t, c, doomed.URL+"/reset")
			answer := make(chan int, 1)
			go func() {
				res, err := c.Post(doomed.URL+"/set", "application/x-www-form-urlencoded", strings.NewReader("name=stale"))
				if err != nil {
					answer <- 0
					return
				}
				res.Body.Close()
				answer <- res.StatusCode
			}()
			redistest.Eventually(t, "the session is held", func() bool { return hasLock(t, r) })
			if stopped {
				doomed.Signal(t, syscall.SIGSTOP)
			} else {
				doomed.Kill()
			}
			post(t, c, other.URL+"/set", "name", "rightful") // once the lease has run out
			want := 0
			if stopped {
				doomed.Signal(t, syscall.SIGCONT)
				want = http.StatusServiceUnavailable
			}
			if status := <-answer; status != want {
				t.Errorf("the stale write was answered with %d", status)
			}
			if got := get(t, c, other.URL+"/params"); got != `["rightful"]` {
				t.Errorf("/params is %s", got)
			}
		})
	}
}
