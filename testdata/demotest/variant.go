package demotest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/a2139e8d/latchkey/testdata/overlay"
)

// A Variant is the demo built from a changed Latchkey: another version, say, or one
// with another clock. The zero value is the demo as it is.
type Variant struct {
	Edits []overlay.Edit

	once sync.Once
	path string
	err  error
}

// Start starts this variant; otherwise it is like the function Start.
func (v *Variant) Start(tb testing.TB, args ...string) *Demo {
	tb.Helper()
	return start(tb, v.Build(tb), args...)
}

// Build builds the variant, once, and returns the path of the binary. What
// LATCHKEY_OVERLAY breaks is broken in it, too.
func (v *Variant) Build(tb testing.TB) string {
	tb.Helper()
	v.once.Do(func() {
		var list string
		if list, v.err = overlay.Write(tb.TempDir(), v.Edits); v.err == nil {
			v.path, v.err = build(list)
		}
	})
	if v.err != nil {
		tb.Fatal(v.err)
	}
	return v.path
}

// build builds the demo with a list of changed files.
func build(list string) (path string, err error) {
	dir, err := TempDir()
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "demo")
	cmd := exec.Command("go", "build", "-o", path, "-overlay", list, "./cmd/demo")
	// In Latchkey's own module, so that others need not have the demo's dependencies.
	if cmd.Dir, err = overlay.Sources("github.com/a2139e8d/latchkey"); err != nil {
		return "", err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the demo: %w\n%s", err, out)
	}
	return path, nil
}

// built are the directories that Clean removes.
var built struct {
	sync.Mutex
	dirs []string
}

// TempDir returns a new directory that lasts until Clean, for what several tests use.
func TempDir() (string, error) {
	dir, err := os.MkdirTemp("", "demotest")
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
