package demotest

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/a2139e8d/latchkey/internal/overlay"
)

// A Variant is the demo built from a changed Latchkey: for example another version, or one with another
// clock. The zero value is the demo as it is.
type Variant struct {
	Edits []overlay.Edit

	// Module and Package name a program that takes the demo's place; default: the demo. It has the flags
	// -addr and -key, and prints its address, as the demo does.
	Module, Package string

	once sync.Once
	path string
	err  error
}

// Start starts this variant, like the function Start.
func (v *Variant) Start(tb testing.TB, args ...string) *Demo {
	tb.Helper()
	return start(tb, v.Build(tb), args...)
}

// Build builds the variant, once, and returns the path of the binary. The changes in LATCHKEY_OVERLAY
// apply to it, too.
func (v *Variant) Build(tb testing.TB) string {
	tb.Helper()
	v.once.Do(func() {
		var list string
		if list, v.err = overlay.Write(tb.TempDir(), v.Edits); v.err == nil {
			v.path, v.err = build(cmp.Or(v.Module, "github.com/a2139e8d/latchkey"), cmp.Or(v.Package, "./cmd/demo"), list)
		}
	})
	if v.err != nil {
		tb.Fatal(v.err)
	}
	return v.path
}

// build builds a package with a list of changed files.
func build(module, pkg, list string) (path string, err error) {
	dir, err := TempDir()
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, filepath.Base(pkg)) // logs of failures are named after it
	cmd := exec.Command("go", "build", "-o", path, "-overlay", list, pkg)
	// The package is built in its own module, so that other modules do not need its dependencies.
	if cmd.Dir, err = overlay.Sources(module); err != nil {
		return "", err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", pkg, err, out)
	}
	return path, nil
}

// built are the directories that Clean removes.
var built struct {
	sync.Mutex
	dirs []string
}

// TempDir returns a new directory that lasts until Clean, for files that several tests use.
func TempDir() (string, error) {
	dir, err := os.MkdirTemp("", "demotest")
	built.Lock()
	defer built.Unlock()
	built.dirs = append(built.dirs, dir)
	return dir, err
}

// Clean removes everything that was built. TestMain calls it.
func Clean() {
	built.Lock()
	defer built.Unlock()
	for _, dir := range built.dirs {
		_ = os.RemoveAll(dir)
	}
}
