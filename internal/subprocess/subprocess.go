// Package subprocess runs other programs for tests, and makes sure that none outlives them.
package subprocess

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A Process is a running program.
type Process struct {
	cmd  *exec.Cmd
	log  log
	done chan struct{} // closed when it has ended
	err  error         // how it ended; read it after done
}

// Start starts cmd. The program's output goes to the log, except standard output if cmd.Stdout is set.
// The program dies with the test binary if the system supports that. EndWith or Kill ends it earlier.
func Start(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, done: make(chan struct{})}
	cmd.Stderr = &p.log
	if cmd.Stdout == nil {
		cmd.Stdout = &p.log
	}
	cmd.SysProcAttr = dieWithParent()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// EndWith kills the process when the test ends. If the test has failed, the log is kept among its
// artifacts; see go test -artifacts.
func (p *Process) EndWith(tb testing.TB) {
	tb.Cleanup(func() {
		p.Kill()
		if !tb.Failed() {
			return
		}
		path := filepath.Join(tb.ArtifactDir(), fmt.Sprintf("%s-%d.log", filepath.Base(p.cmd.Path), p.PID()))
		if err := os.WriteFile(path, []byte(p.Log()), 0o666); err != nil {
			tb.Error(err)
			return
		}
		tb.Logf("kept %s", path)
	})
}

// Kill ends the process with SIGKILL, even one that is stopped, and waits for its end.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.done
}

// Signal sends a signal. It fails the test if the process has ended. After SIGSTOP it waits until the process has stopped.
func (p *Process) Signal(tb testing.TB, s os.Signal) {
	tb.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		tb.Fatal(err)
	}
	if s == syscall.SIGSTOP {
		if err := p.Await(p.hasStopped); err != nil {
			tb.Fatal(err)
		}
	}
}

// hasStopped reports whether all threads have stopped. One of them gets SIGSTOP, and on a busy machine the others
// may go on for a tenth of a second. If the system does not show threads, hasStopped returns true.
func (p *Process) hasStopped() bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.PID()))
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if err != nil {
			continue // it has ended
		}
		state := stat[bytes.LastIndexByte(stat, ')')+1:] // behind the name, which may have any bytes
		if !bytes.HasPrefix(state, []byte(" T")) {
			return false
		}
	}
	return true
}

// Await waits until ready returns true. It returns an error after half a minute, or if the process ends
// before.
func (p *Process) Await(ready func() bool) error {
	for begun := time.Now(); !ready(); {
		select {
		case <-p.done:
			return fmt.Errorf("%s ended at once:\n%s", p.cmd.Path, p.Log())
		case <-time.After(5 * time.Millisecond):
		}
		if time.Since(begun) > 30*time.Second {
			return fmt.Errorf("%s does not answer:\n%s", p.cmd.Path, p.Log())
		}
	}
	return nil
}

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the process ended. Call it after Done.
func (p *Process) Err() error { return p.err }

// PID returns the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Log returns what the process has written so far.
func (p *Process) Log() string { return p.log.String() }

// A log is written by a process while a test reads it.
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
