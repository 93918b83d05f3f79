package main

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/redistest"
)

// shared starts the servers that several processes need to share sessions under a
// lock. It returns the one with the sessions, and the flags for the processes.
func shared(t *testing.T, lock string) (r *redistest.Server, args []string) {
	t.Helper()
	r = redistest.Real(t)
	urls := r.URL
	if lock == lockRedlock {
		urls += "," + redistest.Real(t).URL + "," + redistest.Real(t).URL
	}
	return r, []string{"-lock", lock, "-redis", urls}
}

// underEachLock runs a test of what happens to processes, with a short lease.
func underEachLock(t *testing.T, f func(t *testing.T, r *redistest.Server, args []string)) {
	t.Parallel()
	for lock, lease := range map[string]string{
		lockSpin: "1s", lockTimestamp: "1s", lockLease: "1s",
		lockRedlock: "3s", // a node has a fiftieth of it to answer
	} {
		t.Run(lock, func(t *testing.T) {
			t.Parallel()
			r, args := shared(t, lock)
			f(t, r, append(args, "-lease", lease))
		})
	}
}

// SIGTERM lets a running request finish and leaves no lock behind.
func TestSIGTERMDrains(t *testing.T) { underEachLock(t, testSIGTERMDrains) }

func testSIGTERMDrains(t *testing.T, r *redistest.Server, args []string) {
	p := demotest.Start(t, append(args, "-work", "300ms")...)
	c := newClient(t)
	post(t, c, p.URL+"/reset")
	answered := make(chan string, 1)
	go func() { answered <- post(t, c, p.URL+"/set", "name", "a") }()
	waitFor(t, "the request holds its session", func() bool { return hasLock(t, r) })
	p.Signal(t, syscall.SIGTERM)
	if got := <-answered; got != "ok" {
		t.Errorf("the running request was answered with %q", got)
	}
	if err := p.Wait(t, 20*time.Second); err != nil {
		t.Errorf("the demo ended with %v; log:\n%s", err, p.Log())
	}
	if hasLock(t, r) {
		t.Errorf("a lock is left behind: %v", r.Keys(t))
	}
}

func hasLock(t *testing.T, r *redistest.Server) bool {
	for _, key := range r.Keys(t) {
		if strings.HasSuffix(key, ".lock") {
			return true
		}
	}
	return false
}

// P7, with a real process and a real signal: a process that is killed in the middle of
// a request keeps its session locked for the lease, and no longer.
func TestAKilledProcess(t *testing.T) { underEachLock(t, testAKilledProcess) }

func testAKilledProcess(t *testing.T, r *redistest.Server, args []string) {
	doomed, other := demotest.Start(t, append(args, "-work", "1h")...), demotest.Start(t, args...)
	c := newClient(t)
	post(t, c, doomed.URL+"/reset")
	go func() {
		_, _ = c.Post(doomed.URL+"/set", "application/x-www-form-urlencoded", strings.NewReader("name=never"))
	}()
	waitFor(t, "the session is held", func() bool { return hasLock(t, r) })
	doomed.Kill()
	began := time.Now()
	post(t, c, other.URL+"/set", "name", "next")
	if waited := time.Since(began); waited > 10*time.Second {
		t.Errorf("waited %v for a short lease", waited)
	}
	if got := get(t, c, other.URL+"/params"); got != `["next"]` {
		t.Errorf("/params is %s", got)
	}
}

// P3, with a real process and real signals: a process that is stopped past its lease
// cannot write when it goes on.
func TestAStoppedProcess(t *testing.T) { underEachLock(t, testAStoppedProcess) }

func testAStoppedProcess(t *testing.T, r *redistest.Server, args []string) {
	// The work ends when the lock is lost, and then the handler tries to write.
	paused, other := demotest.Start(t, append(args, "-work", "1h")...), demotest.Start(t, args...)
	c := newClient(t)
	post(t, c, paused.URL+"/reset")
	answer := make(chan int, 1)
	go func() {
		res, err := c.Post(paused.URL+"/set", "application/x-www-form-urlencoded", strings.NewReader("name=stale"))
		if err != nil {
			t.Error(err)
			answer <- 0
			return
		}
		res.Body.Close()
		answer <- res.StatusCode
	}()
	waitFor(t, "the session is held", func() bool { return hasLock(t, r) })
	paused.Signal(t, syscall.SIGSTOP)
	post(t, c, other.URL+"/set", "name", "rightful") // once the lease has run out
	paused.Signal(t, syscall.SIGCONT)
	if status := <-answer; status != http.StatusServiceUnavailable {
		t.Errorf("the stale write was answered with %d", status)
	}
	if got := get(t, c, other.URL+"/params"); got != `["rightful"]` {
		t.Errorf("/params is %s", got)
	}
}
