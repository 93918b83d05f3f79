// Package overlay changes sources for a build without touching the files, see -overlay of the go command.
// Tests use it to build a Latchkey that is broken on purpose, or another version of it.
//
// An [Edit] names what it changes, not the text of it: a place in Go is found by its function and a
// pattern ([In]), a line of Lua by the rule that it keeps ([Rule]). So code can be moved to another file,
// and variables renamed, without any change here.
package overlay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Env is the environment variable with the path of a list of files that are already changed. Further
// changes are applied on top of them.
const Env = "LATCHKEY_OVERLAY"

// An Edit is a change of the sources.
type Edit struct {
	name  string // for errors
	apply func(*tree) error
}

// Append returns the edit that appends a text to a file, which need not exist. The path is relative to
// Latchkey's root, or begins with $GOROOT.
func Append(file, text string) Edit {
	return Edit{file, func(t *tree) error {
		path, err := absolute(file)
		if err != nil {
			return err
		}
		before, err := t.read(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		t.changed[path] = string(before) + text
		return nil
	}}
}

// Apply returns the texts of the files that the edits change, by their paths. If the source of a script
// changes, that includes the script as Redis runs it. It is an error if an edit finds nothing to change,
// or more than one place without being for all.
func Apply(edits []Edit) (map[string]string, error) {
	t, err := newTree()
	if err != nil {
		return nil, err
	}
	for _, edit := range edits {
		if err := edit.apply(t); err != nil {
			return nil, fmt.Errorf("%s: %w", edit.name, err)
		}
	}
	return t.changed, t.renderScripts()
}

// Write writes the changed files to dir, and returns the path of a list of them, for
// -overlay and for [Env].
func Write(dir string, edits []Edit) (string, error) {
	changed, err := Apply(edits)
	if err != nil {
		return "", err
	}
	replaced, err := listed()
	if err != nil {
		return "", err
	}
	for i, path := range slices.Sorted(maps.Keys(changed)) {
		to := filepath.Join(dir, fmt.Sprintf("%d%s", i, filepath.Ext(path)))
		if err := os.WriteFile(to, []byte(changed[path]), 0o666); err != nil {
			return "", err
		}
		replaced[path] = to
	}
	text, err := json.Marshal(list{replaced})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, text, 0o666)
}

// ReadFile reads a file, or the file that replaces it according to the list in [Env].
func ReadFile(path string) ([]byte, error) {
	t, err := newTree()
	if err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	return t.read(path)
}

// A list is the file format of -overlay.
type list struct{ Replace map[string]string }

// listed returns the files that are already changed, with the paths of their replacements.
func listed() (map[string]string, error) {
	l := list{make(map[string]string)}
	if path := os.Getenv(Env); path != "" {
		text, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(text, &l)
		}
		if err != nil {
			return nil, err
		}
	}
	return l.Replace, nil
}

// A tree is the sources with some changes.
type tree struct {
	replaced map[string]string // according to the list in Env
	changed  map[string]string // the texts that the edits have changed
}

func newTree() (*tree, error) {
	replaced, err := listed()
	return &tree{replaced, make(map[string]string)}, err
}

// read returns the present text of a file.
func (t *tree) read(path string) ([]byte, error) {
	if text, ok := t.changed[path]; ok {
		return []byte(text), nil
	}
	if to, ok := t.replaced[path]; ok {
		path = to
	}
	return os.ReadFile(path)
}

// files returns the files of a directory with a certain ending, without tests.
func (t *tree) files(dir, ext string) ([]string, error) {
	path, err := absolute(dir)
	if err != nil {
		return nil, err
	}
	found, err := filepath.Glob(filepath.Join(path, "*"+ext))
	if err != nil {
		return nil, err
	}
	for other := range t.replaced {
		if filepath.Dir(other) == path && filepath.Ext(other) == ext && !slices.Contains(found, other) {
			found = append(found, other)
		}
	}
	slices.Sort(found)
	return slices.DeleteFunc(found, func(file string) bool { return strings.HasSuffix(file, "_test.go") }), nil
}

// absolute returns the absolute path of a file below Latchkey's root or below $GOROOT.
func absolute(path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	root, below := latchkey, path
	if rest, found := strings.CutPrefix(path, "$GOROOT/"); found {
		root, below = goroot, rest
	}
	dir, err := root()
	return filepath.Join(dir, filepath.FromSlash(below)), err
}

// The go command is slow, and its results stay the same.
var (
	latchkey = sync.OnceValues(func() (string, error) { return Sources("github.com/a2139e8d/latchkey") })
	goroot   = sync.OnceValues(func() (string, error) { return goSays("env", "GOROOT") })
)

// Sources returns the directory of a module.
func Sources(module string) (string, error) { return goSays("list", "-m", "-f", "{{.Dir}}", module) }

func goSays(args ...string) (string, error) {
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
