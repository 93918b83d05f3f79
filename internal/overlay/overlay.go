// Package overlay changes sources for a build, without touching the files: see -overlay of
// the go command. With it, tests build a Latchkey that is broken on purpose, or another
// version of it.
package overlay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Env is the environment variable with the path of a list of files that are changed
// already. Other changes are applied on top of them.
const Env = "LATCHKEY_OVERLAY"

// An Edit replaces all occurrences of a text in a file. If Old is empty, it appends New,
// and the file need not exist. The path begins at Latchkey's root, or at that of Go with
// $GOROOT.
type Edit struct{ File, Old, New string }

// Write writes the changed files to dir, and returns the path of a list of them, for
// -overlay.
func Write(dir string, edits []Edit) (string, error) {
	list := struct{ Replace map[string]string }{make(map[string]string)}
	if before := os.Getenv(Env); before != "" {
		text, err := os.ReadFile(before)
		if err == nil {
			err = json.Unmarshal(text, &list)
		}
		if err != nil {
			return "", err
		}
	}
	for i, edit := range edits {
		path, err := edit.path()
		if err != nil {
			return "", err
		}
		from, replaced := list.Replace[path]
		if !replaced {
			from = path
		}
		text, err := edit.Apply(from)
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

// Sources returns the directory of a module.
func Sources(module string) (string, error) { return goSays("list", "-m", "-f", "{{.Dir}}", module) }

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
	root, err := Sources("github.com/a2139e8d/latchkey")
	return filepath.Join(root, e.File), err
}

// Apply returns the text of a file after the edit. It is an error if there is nothing to
// replace.
func (e Edit) Apply(path string) (string, error) {
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
