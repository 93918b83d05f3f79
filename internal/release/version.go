package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
)

// setVersion makes all modules require each other at a version, and the workspace replace that version by the
// directories. It returns the files that were changed.
func setVersion(repository, version string) (changed []string, err error) {
	name := filepath.Join(repository, "go.work")
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	work, err := modfile.ParseWork(name, text, nil)
	if err != nil {
		return nil, err
	}
	for _, use := range work.Use {
		name := filepath.Join(use.Path, "go.mod")
		text, ours, err := requirements(repository, use.Path)
		if err != nil {
			return nil, err
		}
		file, err := modfile.Parse(name, text, nil)
		if err != nil {
			return nil, err
		}
		for path := range ours {
			if err := file.AddRequire(path, version); err != nil {
				return nil, err
			}
		}
		after, err := file.Format()
		if err != nil {
			return nil, err
		}
		if changed, err = write(changed, repository, name, text, after); err != nil {
			return nil, err
		}
	}
	after := text
	for _, r := range work.Replace {
		if strings.HasPrefix(r.Old.Path, root) { // as text, so that comments stay where they are
			line := func(version string) []byte { return []byte("\t" + r.Old.Path + " " + version + " =>") }
			after = bytes.Replace(after, line(r.Old.Version), line(version), 1)
		}
	}
	return write(changed, repository, "go.work", text, after)
}

// write writes a file if its text has changed, and adds its name to changed.
func write(changed []string, repository, name string, before, after []byte) ([]string, error) {
	if bytes.Equal(before, after) {
		return changed, nil
	}
	return append(changed, filepath.ToSlash(name)), os.WriteFile(filepath.Join(repository, name), after, 0o644)
}
