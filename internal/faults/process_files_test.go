package faults

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/a2139e8d/latchkey/internal/demotest"
)

// A process can open no more files, neither for clients nor for Redis, to which it loses
// its connections. It recovers when it can again.
func TestAppOutOfFiles(t *testing.T) {
	s := stage(t, "process out of file descriptors", "P8: refusals, nothing lost, back by itself", setting{logins: true})
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

// refusal matches the log line of a session that was not available for lack of a file descriptor.
var refusal = regexp.MustCompile(`session failed.* status=503 .*too many open files`)

// outOfFiles returns how often a process could not accept a client, and how many requests it has
// refused.
func outOfFiles(d *demotest.Demo) (unaccepted, refused int) {
	log := d.Log()
	return strings.Count(log, "Accept error"), len(refusal.FindAllString(log, -1))
}

// limitFiles sets how many files a process may have open, and returns the limit before.
// Those that are open stay open.
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
