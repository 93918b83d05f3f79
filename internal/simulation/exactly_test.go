package simulation

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/overlay"
)

// A bubble leaves three things to chance: which of two timers of the same instant fires first, which of
// two ready cases of a select is chosen, and whether a goroutine that has called runtime.Gosched waits
// for all others, or only until the scheduler's next 61st step. They matter so rarely that most runs are
// the same each time. To make all runs the same, -exactly builds the test with a changed Go runtime
// without these random choices. Latchkey itself is not changed.
var undiced = []overlay.Edit{
	overlay.In("$GOROOT/src/runtime", "timer.maybeAdd").Replace("t.rand = cheaprand()", "bubbleTimers++\nt.rand = bubbleTimers"),
	overlay.Append("$GOROOT/src/runtime/time.go", "\nvar bubbleTimers uint32 // the first that was started fires first\n"),
	overlay.In("$GOROOT/src/runtime", "selectgo").Replace("cheaprandn(uint32(n + 1))", "uint32(n)"),
	overlay.In("$GOROOT/src/runtime", "findRunnable").False("p.schedtick%61 == 0"),
}

// inside is an environment variable by which a test binary knows that it was built that way.
const inside = "LATCHKEY_SIMULATE_EXACTLY"

// exactly builds this test binary with the changed runtime, and runs its tests with the given arguments.
func exactly(args ...string) (err error) {
	dir, err := os.MkdirTemp("", "simulate")
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, os.RemoveAll(dir)) }()
	list, err := overlay.Write(dir, undiced)
	if err != nil {
		return fmt.Errorf("this version of Go makes its random choices elsewhere: %w", err)
	}
	binary := filepath.Join(dir, "simulate.test")
	build := exec.Command("go", "test", "-c", "-o", binary, "-overlay", list, ".")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	run := exec.Command(binary, args...)
	run.Env = append(os.Environ(), inside+"=1")
	run.Stdout, run.Stderr = os.Stdout, os.Stderr
	return run.Run()
}

// without returns the arguments of this process, except -exactly.
func without() []string {
	return slices.DeleteFunc(slices.Clone(os.Args[1:]), func(arg string) bool {
		return strings.TrimLeft(arg, "-") == "exactly"
	})
}

// With -exactly, a seed repeats its run, and each message arrives in the same nanosecond.
func TestASeedRepeatsItsRun(t *testing.T) {
	if os.Getenv(inside) == "" {
		t.Skip("only with -exactly, and without the race detector, whose scheduler chooses at random")
	}
	for s := *seed; s < *seed+100; s++ {
		p := draw(t, s, *profile)
		hash, tries := run(t, p).Hash, 3
		// On a busy machine the scheduler may interrupt a goroutine that runs for 10 ms, at a moment that
		// no seed determines.
		for tries > 0 && run(t, p).Hash != hash {
			tries--
		}
		if tries == 0 {
			t.Errorf("seed %d, %s: its runs differ", s, p.Profile)
		}
	}
}
