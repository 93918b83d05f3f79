package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/internal/overlay"
)

// A bench builds defects, and runs suites on them.
type bench struct {
	root string // of Latchkey
	dir  string // for what is built
	seed uint64

	modelOnce sync.Once
	model     binary // package model reads the scripts when it runs: it is built once
	modelErr  error
}

// A binary is the tests of a package.
type binary struct {
	path   string
	source string // the directory of the package
	list   string // of the files that are changed
}

// build builds the tests of a package into a directory, over the changed files in a list.
func (b *bench) build(ctx context.Context, in, list, dir string) (binary, error) {
	made := binary{filepath.Join(dir, "suite.test"), filepath.Join(b.root, filepath.FromSlash(in)), list}
	args := []string{"test", "-c", "-o", made.path, "."}
	if list != "" {
		args = append(args, "-overlay", list)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = made.source // which may be a module of its own
	if out, err := cmd.CombinedOutput(); err != nil {
		return made, fmt.Errorf("it cannot be built: %w\n%s", err, out)
	}
	return made, nil
}

// broken returns the tests of a suite, over a defect. dir is for the files that are changed.
func (b *bench) broken(ctx context.Context, t *trial, dir string) (binary, error) {
	list, err := overlay.Write(dir, t.defect.edits)
	if err != nil {
		return binary{}, err
	}
	if t.suite.kind != "model" {
		return b.build(ctx, t.suite.in, list, dir)
	}
	b.modelOnce.Do(func() { b.model, b.modelErr = b.build(ctx, t.suite.in, "", b.dir) })
	made := b.model
	made.list = list
	return made, b.modelErr
}

// run runs the tests, for so long at most. What they build themselves is broken, too.
func (m binary) run(ctx context.Context, limit time.Duration, args ...string) (out string, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, m.path, args...)
	cmd.Dir = m.source
	cmd.Env = append(os.Environ(), overlay.Env+"="+m.list, "LATCHKEY_SIMULATE_EXACTLY=")
	cmd.WaitDelay = 5 * time.Second // for the processes that it has started
	text, err := cmd.CombinedOutput()
	return string(text), err
}
