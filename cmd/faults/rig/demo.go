// Package rig has the real parts of the fault suite: the demo as a process, and the
// wire between it and Redis, which can be made to fail. The Redis servers come from
// package redistest.
package rig

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Key signs the cookies of all demos, unless a test says otherwise.
const Key = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

// A Demo is cmd/demo as a process of its own.
type Demo struct {
	URL string // http://host:port

	cmd  *exec.Cmd
	log  *log
	done chan struct{} // closed when it has ended
	err  error         // how, after done
}

// built is where the binaries are. Clean removes it.
var built struct {
	sync.Mutex
	dirs []string
}

// buildDir returns a new directory for something that is built.
func buildDir() (string, error) {
	dir, err := os.MkdirTemp("", "faults")
	built.Lock()
	defer built.Unlock()
	built.dirs = append(built.dirs, dir)
	return dir, err
}

// Clean removes all that was built. TestMain calls it.
func Clean() {
	built.Lock()
	defer built.Unlock()
	for _, dir := range built.dirs {
		_ = os.RemoveAll(dir)
	}
}

// asIs is the demo as it is.
var asIs Variant

// StartDemo starts the demo on a free port and waits until it serves. It is killed
// when the test ends; if the test has failed, its log is kept.
func StartDemo(tb testing.TB, args ...string) *Demo {
	tb.Helper()
	return asIs.Start(tb, args...)
}

// start does so with one build of the demo.
func start(tb testing.TB, path string, args ...string) *Demo {
	tb.Helper()
	d := &Demo{log: &log{}, done: make(chan struct{})}
	d.cmd = exec.Command(path, append([]string{"-addr", "127.0.0.1:0", "-key", Key}, args...)...)
	d.cmd.Stderr = d.log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, err := d.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		d.Kill()
		if tb.Failed() {
			keep(tb, fmt.Sprintf("demo-%d.log", d.cmd.Process.Pid), d.log.String())
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	go func() {
		_, _ = io.Copy(io.Discard, stdout)
		d.err = d.cmd.Wait()
		close(d.done)
	}()
	_, at, found := strings.Cut(strings.TrimSpace(line), "http://")
	if err != nil || !found {
		tb.Fatalf("the demo said %q, %v; its log:\n%s", line, err, d.log)
	}
	d.URL = "http://" + strings.TrimSuffix(at, "/")
	return d
}

// Signal sends a signal.
func (d *Demo) Signal(tb testing.TB, s os.Signal) {
	tb.Helper()
	if err := d.cmd.Process.Signal(s); err != nil {
		tb.Fatal(err)
	}
}

// Kill ends the process with SIGKILL, even while it is stopped, and waits for its end.
func (d *Demo) Kill() {
	_ = d.cmd.Process.Kill() // it may have ended already
	<-d.done
}

// Wait waits until the process has ended by itself, and returns how.
func (d *Demo) Wait(tb testing.TB, patience time.Duration) error {
	tb.Helper()
	select {
	case <-d.done:
		return d.err
	case <-time.After(patience):
		tb.Fatalf("the demo has not ended after %v; its log:\n%s", patience, d.log)
		return nil
	}
}

// Alive tells whether the process has not ended yet.
func (d *Demo) Alive() bool {
	select {
	case <-d.done:
		return false
	default:
		return true
	}
}

// PID returns the number of the process.
func (d *Demo) PID() int { return d.cmd.Process.Pid }

// Log returns what the process has logged.
func (d *Demo) Log() string { return d.log.String() }

// Files returns how many files and connections the process has open.
func (d *Demo) Files(tb testing.TB) int {
	tb.Helper()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", d.PID()))
	if err != nil {
		tb.Fatal(err)
	}
	return len(open)
}

// keep stores what explains a failure: in the test's artifacts, which go test keeps
// with -artifacts.
func keep(tb testing.TB, name, text string) {
	tb.Helper()
	path := filepath.Join(tb.ArtifactDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		tb.Error(err)
		return
	}
	tb.Logf("kept %s", path)
}

// A log is written by a process and read by a test.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
