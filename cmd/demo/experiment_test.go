package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/redistest"
)

// experiment makes 100 concurrent writes to one session, spread over the processes,
// and returns how many it kept.
func experiment(t *testing.T, processes ...*demotest.Demo) int {
	t.Helper()
	c := newClient(t)
	post(t, c, processes[0].URL+"/reset")
	began := time.Now()
	var crowd sync.WaitGroup
	for i := range 100 {
		crowd.Go(func() { post(t, c, processes[i%len(processes)].URL+"/set", "name", fmt.Sprint(i)) })
	}
	crowd.Wait()
	t.Logf("%d writes took %v", 100, time.Since(began))
	kept, err := strconv.Atoi(get(t, c, processes[0].URL+"/result"))
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

// The experiment that this project began with. Without the lock it must lose writes,
// or it would prove nothing.
func TestAHundredConcurrentWrites(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		if kept := experiment(t, demotest.Start(t)); kept != 100 {
			t.Errorf("kept %d of 100", kept)
		}
		if kept := experiment(t, demotest.Start(t, "-lock", "none")); kept >= 100 {
			t.Errorf("kept %d of 100 without a lock: this test cannot fail", kept)
		}
	})
	t.Run("real", func(t *testing.T) {
		t.Parallel()
		r := redistest.Real(t)
		args := []string{"-redis", r.URL}
		one, two := demotest.Start(t, args...), demotest.Start(t, args...)
		if kept := experiment(t, one); kept != 100 {
			t.Errorf("one process kept %d of 100", kept)
		}
		if kept := experiment(t, one, two); kept != 100 {
			t.Errorf("two processes kept %d of 100", kept)
		}
		args = append(args, "-lock", "none")
		one, two = demotest.Start(t, args...), demotest.Start(t, args...)
		if kept := experiment(t, one); kept >= 100 {
			t.Errorf("one process kept %d of 100 without a lock: this test cannot fail", kept)
		}
		if kept := experiment(t, one, two); kept >= 100 {
			t.Errorf("two processes kept %d of 100 without a lock: this test cannot fail", kept)
		}
	})
	t.Run("unix socket", func(t *testing.T) {
		t.Parallel()
		if kept := experiment(t, demotest.Start(t, "-redis", "unix://"+redistest.Real(t).Socket())); kept != 100 {
			t.Errorf("kept %d of 100", kept)
		}
	})
}

// Every lock keeps all writes, in one process with embedded servers, and in two that
// share real ones.
func TestEveryLockKeepsAll(t *testing.T) {
	t.Parallel()
	for _, lock := range []string{lockTimestamp, lockLease, lockRedlock} {
		t.Run(lock, func(t *testing.T) {
			t.Parallel()
			if kept := experiment(t, demotest.Start(t, "-lock", lock)); kept != 100 {
				t.Errorf("kept %d of 100", kept)
			}
			_, args := shared(t, lock)
			if kept := experiment(t, demotest.Start(t, args...), demotest.Start(t, args...)); kept != 100 {
				t.Errorf("two processes kept %d of 100", kept)
			}
		})
	}
}

// -check is the experiment without a browser.
func TestCheck(t *testing.T) {
	t.Parallel()
	var stdout, stderr strings.Builder
	if err := run(t.Context(), []string{"-check", "100"}, noEnv, &stdout, &stderr); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout.String(), stderr.String())
	}
	if out := stdout.String(); !strings.Contains(out, "none") || !strings.Contains(out, "100 of 100") {
		t.Errorf("table:\n%s", out)
	}
	stdout.Reset()
	if err := run(t.Context(), []string{"-check", "100", "-lock", "all"}, noEnv, &stdout, &stderr); err != nil {
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
