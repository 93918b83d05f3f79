package rig

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A Variant is the demo made of a changed Latchkey: another version of it, say, or one
// with another clock.
type Variant struct {
	Edits []Edit

	once sync.Once
	path string
	err  error
}

// An Edit replaces a text in a file, wherever it is in it. If Old is empty, it adds New
// at the end, and the file need not be there. Its path begins at Latchkey's root, or at
// Go's own sources if it begins with $GOROOT.
type Edit struct{ File, Old, New string }

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
		var overlay string
		if overlay, v.err = v.overlay(tb.TempDir()); v.err == nil {
			v.path, v.err = build(overlay)
		}
	})
	if v.err != nil {
		tb.Fatal(v.err)
	}
	return v.path
}

// build builds the demo with a list of changed files.
func build(overlay string) (path string, err error) {
	dir, err := buildDir()
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "demo")
	cmd := exec.Command("go", "build", "-o", path, "-overlay", overlay, "./cmd/demo")
	// In Latchkey's own module, so that this one need not have the demo's dependencies.
	if cmd.Dir, err = sources("github.com/a2139e8d/latchkey"); err != nil {
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
	path, err := v.overlay(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// overlay writes the changed files to dir, and returns the path of a list of them.
func (v *Variant) overlay(dir string) (string, error) {
	list := struct{ Replace map[string]string }{make(map[string]string)}
	if broken := os.Getenv("LATCHKEY_OVERLAY"); broken != "" {
		text, err := os.ReadFile(broken)
		if err == nil {
			err = json.Unmarshal(text, &list)
		}
		if err != nil {
			return "", err
		}
	}
	for i, edit := range v.Edits {
		path, err := edit.path()
		if err != nil {
			return "", err
		}
		from, replaced := list.Replace[path]
		if !replaced {
			from = path
		}
		text, err := edit.apply(from)
		if err != nil {
			return "", err
		}
		to := filepath.Join(dir, fmt.Sprintf("%d%s", i, filepath.Ext(path)))
		if err := os.WriteFile(to, []byte(text), 0o666); err != nil {
			return "", err
		}
		list.Replace[path] = to
	}
	text, err := json.Marshal(list)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, text, 0o666)
}

// sources returns where a module is.
func sources(module string) (string, error) { return goSays("list", "-m", "-f", "{{.Dir}}", module) }

func goSays(args ...string) (string, error) {
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

func (e Edit) path() (string, error) {
	if below, found := strings.CutPrefix(e.File, "$GOROOT/"); found {
		root, err := goSays("env", "GOROOT")
		return filepath.Join(root, below), err
	}
	root, err := sources("github.com/a2139e8d/latchkey")
	return filepath.Join(root, e.File), err
}

// apply returns the text of a file after the edit. One that finds nothing to replace
// is a mistake.
func (e Edit) apply(path string) (string, error) {
	text, err := os.ReadFile(path)
	switch {
	case e.Old == "" && (err == nil || errors.Is(err, fs.ErrNotExist)):
		return string(text) + e.New, nil
	case err != nil:
		return "", err
	case !strings.Contains(string(text), e.Old):
		return "", fmt.Errorf("%s has no %q", e.File, e.Old)
	}
	return strings.ReplaceAll(string(text), e.Old, e.New), nil
}
