package subprocess_test

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/a2139e8d/latchkey/internal/subprocess"
)

func start(t *testing.T, script string) *subprocess.Process {
	t.Helper()
	p, err := subprocess.Start(exec.Command("sh", "-c", script))
	if err != nil {
		t.Fatal(err)
	}
	p.EndWith(t)
	return p
}

// The log has both streams, and Err is the error of the program.
func TestEndsByItself(t *testing.T) {
	t.Parallel()
	p := start(t, "echo out; echo err >&2; exit 3")
	<-p.Done()
	if got := p.Log(); got != "out\nerr\n" {
		t.Errorf("the log is %q", got)
	}
	if err := p.Err(); err == nil || err.Error() != "exit status 3" {
		t.Errorf("the process ended with %v", err)
	}
	p.Kill() // does nothing
}

// Kill also ends a process that is stopped.
func TestKill(t *testing.T) {
	t.Parallel()
	p := start(t, "exec sleep 1000")
	p.Signal(t, syscall.SIGSTOP)
	p.Kill()
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the process ended with %v", err)
	}
}

// If the command has its own standard output, the log does not get that.
func TestOutput(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	cmd := exec.Command("sh", "-c", "echo out; echo err >&2")
	cmd.Stdout = &out
	p, err := subprocess.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if out.String() != "out\n" || p.Log() != "err\n" {
		t.Errorf("the output is %q, the log %q", out.String(), p.Log())
	}
}

func TestNoSuchProgram(t *testing.T) {
	t.Parallel()
	if p, err := subprocess.Start(exec.Command("/nonexistent")); err == nil {
		p.Kill()
		t.Error("started a program that does not exist")
	}
}
