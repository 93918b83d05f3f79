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

// A bench builds tests, over defects and over Latchkey as it is.
type bench struct {
	root string // of Latchkey
	dir  string // of the built files
	seed uint64

	whole   memo[built] // by package
	healthy memo[bool]  // by package and test
}

type built struct {
	binary
	err error
}

// A memo has values that are computed when they are first needed.
type memo[V any] struct{ all sync.Map }

func (m *memo[V]) get(key string, make func() V) V {
	once, _ := m.all.LoadOrStore(key, sync.OnceValue(make))
	return once.(func() V)()
}

// A binary has the tests of a package.
type binary struct {
	path   string
	source string // the directory of the package
	list   string // of the changed files
}

// build builds the tests of a package into a directory, over the changed files in a list.
func (b *bench) build(ctx context.Context, in, list, dir string) (binary, error) {
	made := binary{filepath.Join(dir, "suite.test"), filepath.Join(b.root, filepath.FromSlash(in)), list}
	args := []string{"test", "-c", "-o", made.path, "."}
	if list != "" {
		args = append(args, "-overlay", list)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = made.source // the package may be in another module
	if out, err := cmd.CombinedOutput(); err != nil {
		return made, fmt.Errorf("it cannot be built: %w\n%s", err, out)
	}
	return made, nil
}

// buildWhole builds the tests of a package over Latchkey as it is, once.
func (b *bench) buildWhole(ctx context.Context, in string) built {
	return b.whole.get(in, func() built {
		dir, err := os.MkdirTemp(b.dir, "")
		if err != nil {
			return built{err: err}
		}
		m, err := b.build(ctx, in, "", dir)
		return built{m, err}
	})
}

// passes reports whether a test passes on Latchkey as it is. If it does not, its failure says nothing
// about a defect.
func (b *bench) passes(ctx context.Context, in, test string) bool {
	return b.healthy.get(in+" "+test, func() bool {
		m := b.buildWhole(ctx, in)
		if m.err != nil {
			return false
		}
		_, err := m.run(ctx, time.Minute, "-test.short", "-test.run", exactly(test))
		return err == nil
	})
}

// buildBroken builds the tests of a suite over a defect. dir is for the changed files.
func (b *bench) buildBroken(ctx context.Context, t *trial, dir string) (binary, error) {
	list, err := overlay.Write(dir, t.defect.edits)
	if err != nil {
		return binary{}, err
	}
	if t.suite.kind != "model" {
		return b.build(ctx, t.suite.in, list, dir)
	}
	made := b.buildWhole(ctx, t.suite.in) // the test reads the scripts when it runs
	made.list = list
	return made.binary, made.err
}

// run runs the tests, for at most limit. Anything that the tests build is broken, too.
func (m binary) run(ctx context.Context, limit time.Duration, args ...string) (out string, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, m.path, args...)
	cmd.Dir = m.source
	cmd.Env = append(os.Environ(), overlay.Env+"="+m.list, "LATCHKEY_SIMULATE_EXACTLY=")
	cmd.WaitDelay = 5 * time.Second // for the processes that the test has started
	text, err := cmd.CombinedOutput()
	return string(text), err
}
