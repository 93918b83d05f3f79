package faults

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/overlay"
)

// panicking is the demo with a handler that sometimes panics after it has changed the
// session.
var panicking = demotest.Variant{Edits: []overlay.Edit{
	overlay.In("cmd/demo", "incr").After(`s.Set("n", v)`, `if time.Now().UnixNano()>>10%8 == 0 {
	s.Set("n", v+999)
	panic("every now and then")
}`),
}}

// Each panic releases the session, and saves none of the changes made before the panic. Otherwise a history would
// have a number that no order explains.
func TestAppPanics(t *testing.T) {
	panicking.Build(t)
	s := stage(t, "a handler panics again and again", "P7: saves nothing, frees the session", setting{logins: true, demos: 1})
	d := s.addVariant(&panicking)
	panics := func() int { return strings.Count(d.Log(), "http: panic serving") }
	s.run(func(ctx context.Context) {
		pause(ctx, time.Second)
		eventually(t, 20*time.Second, "a handler has panicked 20 times", func() bool { return panics() >= 20 })
	})
	s.seen = fmt.Sprintf("%d panics", panics())
}

// A process cannot open files any more, neither for clients nor for Redis, and it loses its connections to Redis.
// It recovers when it can open files again.
func TestAppOutOfFiles(t *testing.T) {
	s := stage(t, "process out of file descriptors", "P8: refusals, nothing lost, recovers by itself", setting{logins: true})
	short := s.demos[1]
	s.run(func(context.Context) {
		for range stops() {
			unaccepted, refused := outOfFiles(short)
			before := limitFiles(t, short, 3) // stdin, stdout and stderr
			client, err := net.Dial("tcp", strings.TrimPrefix(short.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			s.redis.Do(t, "CLIENT", "KILL", "TYPE", "normal")
			eventually(t, s.longest, "it accepts no client, and cannot reach Redis", func() bool {
				a, r := outOfFiles(short)
				return a > unaccepted && r > refused
			})
			limitFiles(t, short, before)
			_ = client.Close()
		}
	})
	_, refused := outOfFiles(short)
	s.seen = fmt.Sprintf("%d requests refused", refused)
}

// refusal matches the log line of a session that was unavailable for lack of a file descriptor.
var refusal = regexp.MustCompile(`session failed.* status=503 .*too many open files`)

// outOfFiles returns how often a process could not accept a client, and how many requests it has
// refused.
func outOfFiles(d *demotest.Demo) (unaccepted, refused int) {
	log := d.Log()
	return strings.Count(log, "Accept error"), len(refusal.FindAllString(log, -1))
}

// limitFiles limits how many files a process may have open, and returns the earlier limit. Files that are open
// stay open.
func limitFiles(t *testing.T, d *demotest.Demo, files uint64) (before uint64) {
	t.Helper()
	var old syscall.Rlimit
	pid := uintptr(d.PID())
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, pid, syscall.RLIMIT_NOFILE, 0, uintptr(unsafe.Pointer(&old)), 0, 0); errno != 0 {
		t.Fatal(errno)
	}
	limit := syscall.Rlimit{Cur: files, Max: old.Max}
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, pid, syscall.RLIMIT_NOFILE, uintptr(unsafe.Pointer(&limit)), 0, 0, 0); errno != 0 {
		t.Fatal(errno)
	}
	return old.Cur
}

// Both processes get SIGTERM, one after the other, while each holds sessions and has a request that waits for
// one. They finish all requests that have begun, and leave no lock behind.
func TestAppsTerminatedInTurn(t *testing.T) {
	s := stage(t, "processes terminated in turn", "requests that had begun are answered; no lock is left", setting{logins: true, flags: []string{"-work", "1s"}})
	var answered int
	s.run(func(context.Context) {
		first, second := s.demos[0], s.demos[1]
		answered += s.terminate(first, second)
		third := s.add(s.redis.URL)
		answered += s.terminate(second, third)
	})
	s.seen = fmt.Sprintf("all %d requests that had begun were answered", answered)
}

// terminate ends a process and returns how many requests it was serving.
func (s *scene) terminate(d, other *demotest.Demo) (answered int) {
	s.Helper()
	guests := make([]*guest, 8)
	for i := range guests {
		guests[i] = s.guest(d)
	}
	// One request waits for a session that the other process holds. All others hold their sessions.
	elsewhere, waits := s.holdAndWait(s.guest(other), other, d, ".queue")
	var here []*holding
	for _, g := range guests {
		here = append(here, s.holdAs(g, d, "held"))
	}
	d.Signal(s.T, syscall.SIGTERM)
	s.close(d)
	for _, h := range here {
		h.must("a request that had begun", <-h.replies, http.StatusOK, "ok")
		h.mustHave(other, "held")
	}
	elsewhere.must("the holder in the other process", <-elsewhere.replies, http.StatusOK, "ok")
	elsewhere.must("the request that waited", <-waits, http.StatusOK, "ok")
	elsewhere.mustHave(other, "held", "waited")
	s.mustHaveEnded(d)
	return len(here) + 1
}

// mustHaveEnded asserts that a process ends after SIGTERM, and leaves no lock.
func (s *scene) mustHaveEnded(d *demotest.Demo) {
	s.Helper()
	if err := d.Wait(s.T, s.longest); err != nil {
		s.Errorf("the process ended with %v", err)
	}
	if left := s.locks(d); len(left) > 0 {
		s.Errorf("the process has left %s", strings.Join(left, ", "))
	}
}

// locks returns the keys of a process's locks.
func (s *scene) locks(of *demotest.Demo) (keys []string) {
	s.Helper()
	for _, key := range guards(s.T, s.redis) {
		if !strings.HasSuffix(key, ".lock") {
			continue
		}
		if token, _ := s.redis.Get(s.T, key); strings.Contains(token, fmt.Sprintf("/%d ", of.PID())) {
			keys = append(keys, key)
		}
	}
	return keys
}

// replace ends a process that another one has replaced, as in a rolling restart.
func (s *scene) replace(old *demotest.Demo) {
	s.Helper()
	s.close(old)
	old.Signal(s.T, syscall.SIGTERM)
	s.mustHaveEnded(old)
}
