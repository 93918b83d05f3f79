package rig

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/a2139e8d/latchkey/testdata/overlay"
)

// A Variant is the demo made of a changed Latchkey: another version of it, say, or one
// with another clock.
type Variant struct {
	Edits []Edit

	once sync.Once
	path string
	err  error
}

// An Edit changes a file of Latchkey's, or of Go's.
type Edit = overlay.Edit

// Start starts the demo, made that way, as StartDemo does.
func (v *Variant) Start(tb testing.TB, args ...string) *Demo {
	tb.Helper()
	return start(tb, v.Build(tb), args...)
}

// Build builds it, once, and returns the path of the binary. What LATCHKEY_OVERLAY
// breaks is broken here, too.
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
	dir, err := buildDir()
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "demo")
	cmd := exec.Command("go", "build", "-o", path, "-overlay", list, "./cmd/demo")
	// In Latchkey's own module, so that this one need not have the demo's dependencies.
	if cmd.Dir, err = overlay.Sources("github.com/a2139e8d/latchkey"); err != nil {
		return "", err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the demo: %w\n%s", err, out)
	}
	return path, nil
}

// Overlay writes the changed files, for the time of the test, and returns the path of
// a list of them, for -overlay and LATCHKEY_OVERLAY.
func (v *Variant) Overlay(tb testing.TB) string {
	tb.Helper()
	path, err := overlay.Write(tb.TempDir(), v.Edits)
	if err != nil {
		tb.Fatal(err)
	}
	return path
}
