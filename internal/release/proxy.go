package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// writeProxy writes all modules of a working tree, as one version, into a directory that GOPROXY can name with
// file://. A module proxy would serve the same after the tags: no file that git ignores, and no
// nested module in the module around it.
func writeProxy(proxy, repository, version string) error {
	for _, dir := range published {
		if err := writeModule(proxy, repository, dir, version); err != nil {
			return fmt.Errorf("%s: %w", pathOf(dir), err)
		}
		if err := list(proxy, dir, version); err != nil {
			return err
		}
	}
	return nil
}

// directoryOf returns the directory in which a proxy has all versions of a module.
func directoryOf(proxy, dir string) string {
	return filepath.Join(proxy, filepath.FromSlash(pathOf(dir)), "@v")
}

// list adds a version to those of which the go command takes the latest.
func list(proxy, dir, version string) error {
	name := filepath.Join(directoryOf(proxy, dir), "list")
	known, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !slices.Contains(strings.Fields(string(known)), version) {
		known = append(known, version+"\n"...)
	}
	return os.WriteFile(name, known, 0o666)
}

// writeModule writes a version of a module. It is found by its name, and not in the list.
func writeModule(proxy, repository, dir, version string) error {
	mod := module.Version{Path: pathOf(dir), Version: version}
	at := directoryOf(proxy, dir)
	if err := os.MkdirAll(at, 0o777); err != nil {
		return err
	}
	text, _, err := requirements(repository, dir)
	if err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": version, "Time": time.Unix(0, 0).UTC()})
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{version + ".info": info, version + ".mod": text} {
		if err := os.WriteFile(filepath.Join(at, name), content, 0o666); err != nil {
			return err
		}
	}
	files, err := filesOf(repository, dir)
	if err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(at, version+".zip"))
	if err != nil {
		return err
	}
	err = zip.Create(out, mod, files) // also checks what a module may contain
	if closed := out.Close(); err == nil {
		err = closed
	}
	return err
}

// filesOf returns the files of a module that git knows, or would add.
func filesOf(repository, dir string) ([]zip.File, error) {
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ".")
	list.Dir = filepath.Join(repository, dir)
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	names := strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
	var nested []string
	for _, name := range names {
		if below, ok := strings.CutSuffix(name, "/go.mod"); ok {
			nested = append(nested, below+"/")
		}
	}
	var files []zip.File
next:
	for _, name := range names {
		for _, below := range nested {
			if strings.HasPrefix(name, below) {
				continue next
			}
		}
		path := filepath.Join(list.Dir, filepath.FromSlash(name))
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() { // not deleted, no link
			files = append(files, file{path, name})
		}
	}
	return files, nil
}

// A file is one for package zip.
type file struct{ path, name string }

func (f file) Path() string                 { return f.name }
func (f file) Lstat() (os.FileInfo, error)  { return os.Lstat(f.path) }
func (f file) Open() (io.ReadCloser, error) { return os.Open(f.path) }

// outside returns the environment of go commands that know nothing of the workspace, and find Latchkey in a proxy.
// Their downloads stay in cache, which may be removed. The go command remembers which files a version has, also if that
// version was removed and is downloaded again with other files: goindex=0 prevents this.
func outside(proxy, cache string) ([]string, error) {
	out, err := exec.Command("go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	known := strings.Fields(string(out)) // what was downloaded before need not be again
	return []string{"GODEBUG=goindex=0", "GOWORK=off", "GOFLAGS=-modcacherw", "GOMODCACHE=" + cache, "GONOSUMDB=" + root,
		"GOPROXY=file://" + proxy + ",file://" + filepath.Join(known[0], "cache", "download") + "," + known[1]}, nil
}
