// Package demotest runs cmd/demo for tests, as a separate process: as it is, or built from changed
// sources.
package demotest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/subprocess"
)

// Key signs the cookies of all demos, unless a flag names another key. So each demo can open the sessions
// of the others.
const Key = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

// A Demo is a running cmd/demo.
type Demo struct {
	*subprocess.Process
	URL string // http://host:port
}

// asIs is the demo without changes.
var asIs Variant

// Start starts the demo on a free port and waits until it serves. The demo is killed when the test ends;
// if the test has failed, its log is kept.
func Start(tb testing.TB, args ...string) *Demo {
	tb.Helper()
	return asIs.Start(tb, args...)
}

// start starts one build of the demo.
func start(tb testing.TB, path string, args ...string) *Demo {
	tb.Helper()
	cmd := exec.Command(path, append([]string{"-addr", "127.0.0.1:0", "-key", Key}, args...)...)
	cmd.Env = append(os.Environ(), "LATCHKEY_REDIS=") // so that a developer's own Redis stays untouched
	stdout := firstLine{line: make(chan string, 1)}
	cmd.Stdout = &stdout
	p, err := subprocess.Start(cmd)
	if err != nil {
		tb.Fatal(err)
	}
	p.EndWith(tb)
	line := ""
	select {
	case line = <-stdout.line:
	case <-p.Done():
	case <-time.After(time.Minute):
	}
	_, at, found := strings.Cut(line, "http://")
	if !found {
		tb.Fatalf("the demo's first line is %q; its log:\n%s", line, p.Log())
	}
	return &Demo{Process: p, URL: "http://" + strings.TrimSuffix(at, "/")}
}

// Wait waits until the demo has ended by itself, and returns its error.
func (d *Demo) Wait(tb testing.TB, patience time.Duration) error {
	tb.Helper()
	select {
	case <-d.Done():
		return d.Err()
	case <-time.After(patience):
		tb.Fatalf("the demo has not ended after %v; its log:\n%s", patience, d.Log())
		return nil
	}
}

// Alive reports whether the demo has not ended yet.
func (d *Demo) Alive() bool {
	select {
	case <-d.Done():
		return false
	default:
		return true
	}
}

// Files returns how many files and connections the demo has open. It needs Linux.
func (d *Demo) Files(tb testing.TB) int {
	tb.Helper()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", d.PID()))
	if err != nil {
		tb.Fatal(err)
	}
	return len(open)
}

// A firstLine passes on the first line that is written to it, and drops the rest.
type firstLine struct {
	line   chan string
	begun  []byte
	passed bool
}

func (f *firstLine) Write(b []byte) (int, error) {
	if !f.passed {
		f.begun = append(f.begun, b...)
		if line, _, whole := bytes.Cut(f.begun, []byte("\n")); whole {
			f.line <- string(line)
			f.passed = true
		}
	}
	return len(b), nil
}
