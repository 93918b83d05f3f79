package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/redistest"
)

// patience is how long a request may wait for a lock. Redlock needs more than the default if other programs keep
// the machine busy.
const patience = "1m"

// shared starts the servers that several processes need to share sessions and a lock, and returns the flags
// for the processes.
func shared(t *testing.T, lock string) []string {
	t.Helper()
	urls := redistest.Real(t).URL
	if lock == lockRedlock {
		urls += "," + redistest.Real(t).URL + "," + redistest.Real(t).URL
	}
	return []string{"-lock", lock, "-redis", urls, "-lock-wait", patience}
}

// experiment makes 100 concurrent writes to one session, spread over the processes,
// and returns how many it kept.
func experiment(t *testing.T, processes ...*demotest.Demo) int {
	t.Helper()
	c := newClient(t)
	post(t, c, processes[0].URL+"/reset")
	var crowd sync.WaitGroup
	for i := range 100 {
		crowd.Go(func() { post(t, c, processes[i%len(processes)].URL+"/set", "name", fmt.Sprint(i)) })
	}
	crowd.Wait()
	kept, err := strconv.Atoi(get(t, c, processes[0].URL+"/result"))
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

// The experiment that this project began with, in one process and in two. Every lock keeps all
// writes. Without one the experiment must lose some, or it would prove nothing.
func TestAHundredConcurrentWrites(t *testing.T) {
	t.Parallel()
	for _, lock := range locks {
		t.Run(lock, func(t *testing.T) {
			t.Parallel()
			args := shared(t, lock)
			one, two := demotest.Start(t, args...), demotest.Start(t, args...)
			for _, processes := range [][]*demotest.Demo{{one}, {one, two}} {
				if kept := experiment(t, processes...); (kept == 100) != (lock != lockNone) {
					t.Errorf("%d processes kept %d of 100", len(processes), kept)
				}
			}
		})
	}
	t.Run("unix socket", func(t *testing.T) {
		t.Parallel()
		if kept := experiment(t, demotest.Start(t, "-redis", "unix://"+redistest.Real(t).Socket())); kept != 100 {
			t.Errorf("kept %d of 100", kept)
		}
	})
}

// -check is the experiment without a browser, in one process on the embedded Redis.
func TestCheck(t *testing.T) {
	t.Parallel()
	var stdout, stderr strings.Builder
	if err := run(t.Context(), []string{"-check", "100", "-lock", "all", "-lock-wait", patience}, noEnv, &stdout, &stderr); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout.String(), stderr.String())
	}
	for _, lock := range locks {
		if lock != lockNone && !regexp.MustCompile(`(?m)^`+lock+` +100 of 100 `).MatchString(stdout.String()) {
			t.Errorf("nothing of %s in the table:\n%s", lock, stdout.String())
		}
	}
	stdout.Reset()
	err := run(t.Context(), []string{"-check", "100", "-lock", "none"}, noEnv, &stdout, &stderr)
	if err == nil || !strings.Contains(err.Error(), "writes were lost") {
		t.Errorf("without a lock: %v\n%s", err, stdout.String())
	}
}

// A check ends its sessions, so it leaves none in the user's Redis. The keys that refuse late writes stay for a
// minute.
func TestACheckLeavesNoSession(t *testing.T) {
	t.Parallel()
	for _, lock := range locks {
		t.Run(lock, func(t *testing.T) {
			t.Parallel()
			r := redistest.Real(t)
			args := []string{"-check", "3", "-lock", lock, "-lock-wait", patience, "-redis", r.URL}
			if lock == lockRedlock {
				args[len(args)-1] += "," + redistest.Real(t).URL + "," + redistest.Real(t).URL
			}
			var stdout, stderr strings.Builder
			if err := run(t.Context(), args, noEnv, &stdout, &stderr); err != nil && lock != lockNone {
				t.Fatalf("%v\n%s%s", err, stdout.String(), stderr.String())
			}
			for _, key := range r.Keys(t) {
				left := r.Do(t, "PTTL", key)
				if ms, ok := left.(int64); !ok || ms == -1 || ms > 60_000 { // -1: for ever, -2: it is gone by now
					t.Errorf("the check has left %s for %v ms", key, left)
				}
			}
		})
	}
}
