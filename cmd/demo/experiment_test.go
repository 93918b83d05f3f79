package main

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/testdata/redistest"
)

const key = "6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b"

// experiment fires 100 concurrent writes at one session, spread over the
// processes, and returns how many it kept.
func experiment(t *testing.T, processes ...*process) int {
	t.Helper()
	c := newClient(t)
	post(t, c, processes[0].url+"/reset")
	began := time.Now()
	var crowd sync.WaitGroup
	for i := range 100 {
		crowd.Go(func() { post(t, c, processes[i%len(processes)].url+"/set", "name", fmt.Sprint(i)) })
	}
	crowd.Wait()
	t.Logf("%d writes took %v", 100, time.Since(began))
	kept, err := strconv.Atoi(get(t, c, processes[0].url+"/result"))
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

// The experiment that this project began with. Without the lock it must fail, or
// it would prove nothing with it.
func TestAHundredConcurrentWrites(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		if kept := experiment(t, start(t)); kept != 100 {
			t.Errorf("kept %d of 100", kept)
		}
		if kept := experiment(t, start(t, "-lock", "none")); kept >= 100 {
			t.Errorf("kept %d of 100 without a lock: this test cannot fail", kept)
		}
	})
	t.Run("real", func(t *testing.T) {
		t.Parallel()
		r := redistest.Real(t)
		args := []string{"-redis", r.URL, "-key", key}
		one, two := start(t, args...), start(t, args...)
		if kept := experiment(t, one); kept != 100 {
			t.Errorf("one process kept %d of 100", kept)
		}
		if kept := experiment(t, one, two); kept != 100 {
			t.Errorf("two processes kept %d of 100", kept)
		}
		args = append(args, "-lock", "none")
		one, two = start(t, args...), start(t, args...)
		if kept := experiment(t, one); kept >= 100 {
			t.Errorf("one process kept %d of 100 without a lock: this test cannot fail", kept)
		}
		if kept := experiment(t, one, two); kept >= 100 {
			t.Errorf("two processes kept %d of 100 without a lock: this test cannot fail", kept)
		}
	})
	t.Run("unix socket", func(t *testing.T) {
		t.Parallel()
		if kept := experiment(t, start(t, "-redis", "unix://"+redistest.Real(t).Socket())); kept != 100 {
			t.Errorf("kept %d of 100", kept)
		}
	})
}

// -check is the experiment without a browser.
func TestCheck(t *testing.T) {
	t.Parallel()
	var stdout, stderr strings.Builder
	if err := run(t.Context(), []string{"-check", "100"}, &stdout, &stderr); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout.String(), stderr.String())
	}
	if out := stdout.String(); !strings.Contains(out, "none") || !strings.Contains(out, "100 of 100") {
		t.Errorf("table:\n%s", out)
	}
	stdout.Reset()
	err := run(t.Context(), []string{"-check", "100", "-lock", "none"}, &stdout, &stderr)
	if err == nil || !strings.Contains(err.Error(), "writes were lost") {
		t.Errorf("without a lock: %v\n%s", err, stdout.String())
	}
}

// P7, with a real process and a real signal: whoever is killed in the middle of
// a request keeps its session shut for the lease, and no longer.
func TestAKilledProcess(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	args := []string{"-redis", r.URL, "-key", key, "-lease", "1s"}
	doomed, other := start(t, append(args, "-work", "1h")...), start(t, args...)
	c := newClient(t)
	post(t, c, doomed.url+"/reset")
	go func() {
		_, _ = c.Post(doomed.url+"/set", "application/x-www-form-urlencoded", strings.NewReader("name=never"))
	}()
	waitFor(t, "the session is held", func() bool { return hasLock(t, r) })
	if err := doomed.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-doomed.done
	began := time.Now()
	post(t, c, other.url+"/set", "name", "next")
	if waited := time.Since(began); waited > 5*time.Second {
		t.Errorf("waited %v for a lease of 1s", waited)
	}
	if got := get(t, c, other.url+"/params"); got != `["next"]` {
		t.Errorf("/params is %s", got)
	}
}

// P3, with a real process and real signals: whoever is stopped past its lease
// cannot write when it goes on.
func TestAStoppedProcess(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	args := []string{"-redis", r.URL, "-key", key, "-lease", "500ms"}
	// The work ends when the lock is lost, and then the handler tries to write.
	paused, other := start(t, append(args, "-work", "1h")...), start(t, args...)
	c := newClient(t)
	post(t, c, paused.url+"/reset")
	answer := make(chan int, 1)
	go func() {
		res, err := c.Post(paused.url+"/set", "application/x-www-form-urlencoded", strings.NewReader("name=stale"))
		if err != nil {
			t.Error(err)
			answer <- 0
			return
		}
		res.Body.Close()
		answer <- res.StatusCode
	}()
	waitFor(t, "the session is held", func() bool { return hasLock(t, r) })
	stop(t, paused)
	post(t, c, other.url+"/set", "name", "rightful") // once the lease has run out
	resume(t, paused)
	if status := <-answer; status != http.StatusServiceUnavailable {
		t.Errorf("the stale write was answered with %d", status)
	}
	if got := get(t, c, other.url+"/params"); got != `["rightful"]` {
		t.Errorf("/params is %s", got)
	}
}
